"""Documents and topics with tags: in any layout, each is read once, with its text."""

import html
import re
import tracemalloc

import pytest
from growth import assert_linear
from hypothesis import given, strategies as st

from rankgauge import FormatError
from rankgauge.formats import sgml
from rankgauge.formats.texts import Faults, StoredTexts, TextReader, TextSource, read_texts

_BLANK = st.text(" \t\n\r", max_size=4)
_WORDS = st.lists(
    st.sampled_from(["fees", "5 < 6", "7 > 3", "a<3", "&", "<DOC>", "</topic>", "<!--", "]]>"]), min_size=1, max_size=6
).map(" ".join)


def read(path, data):
    path.write_bytes(data)
    return [(row.id, row.title, row.text) for row in read_texts(path)]


def document(key, title, text, blank=""):
    parts = ("<DOC>", f"<DOCNO> {key} </DOCNO>", f"<TITLE>{title}</TITLE>", f"<TEXT>{text}</TEXT>", "</DOC>")
    return blank.join(parts)


def topic(key, title, text, blank=""):
    parts = (f'<topic number="{key}">', f"<query>{title}</query>", f"<narrative>{text}</narrative>", "</topic>")
    return blank.join(parts)


@given(st.data())
def test_the_layout_of_documents_and_topics_changes_nothing(tmp_path_factory, data):
    texts = data.draw(st.lists(st.tuples(_WORDS, _WORDS), min_size=1, max_size=5))
    made = data.draw(st.sampled_from([document, topic]))
    root = "docs" if made is document else "topics"
    rows = [(f"x{n}", title, text) for n, (title, text) in enumerate(texts)]
    coded = [made(key, *(html.escape(part, quote=False) for part in parts), data.draw(_BLANK)) for key, *parts in rows]
    between = _BLANK | st.just("<!-- <DOC> <topic>\n -->")
    text = data.draw(_BLANK) + "".join(one + data.draw(between) for one in coded)
    if data.draw(st.booleans()):
        text = f"<{root}>{text}</{root}>"
    if data.draw(st.booleans()):
        text = re.sub("</(DOC|DOCNO|TEXT|topic|query|narrative)>", r"</\1 >", text)
    path = tmp_path_factory.mktemp("marked") / "a.xml"
    path.write_bytes(text.encode())
    found = list(read_texts(path))
    if made is document:
        assert [(row.id, row.title, row.text) for row in found] == rows
    else:
        assert [(row.id, row.text, row.fields["narrative"]) for row in found] == rows
    # The same if texts stay in the file, also in the middle of a line.
    stored = StoredTexts(TextReader(TextSource.of(path)))
    assert [stored[row.id] for row in found] == found


@given(
    st.lists(
        st.sampled_from(["<DOC>", "</DOC>", "<doc >", "<DOCNO>a</DOCNO>", "<topic", "\n", "<", "--", "x ", "\r"]),
        max_size=12,
    ).map("".join),
    st.integers(1, 9),
)
def test_every_element_is_a_piece_however_its_bytes_are_cut(text, size):
    data = text.encode()
    whole = list(sgml.pieces([(1, 0, data)]))
    parts = [(1, at, data[at : at + size]) for at in range(0, len(data), size)]
    assert list(sgml.pieces(parts)) == whole
    begun = [piece for _, _, piece in whole if re.match(rb"<doc[ >]", piece, re.IGNORECASE)]
    if "<topic" not in text:
        assert len(begun) == len(re.findall("<doc[ >]", text, re.IGNORECASE))
    for _, offset, piece in whole:
        assert data[offset:].startswith(piece[:4])


@pytest.mark.parametrize(
    "text",
    [
        document("d1", "T", "one") + document("d2", "U", "two"),
        "<DOCS>" + document("d1", "T", "one", "\n  ") + document("d2", "U", "two") + "</DOCS>",
        document("d1", "T", "one").replace("</DOC>", "</DOC\n>")
        + document("d2", "U", "two").replace("<TEXT>", '<TEXT lang="en">'),
        document("d1", "T", "<![CDATA[one]]>") + document("d2", "U", "<!-- <b> -->two"),
    ],
)
def test_two_documents_on_a_line_are_two(tmp_path, text):
    found = read(tmp_path / "a.sgml", text.encode())
    assert found == [("d1", "T", "one"), ("d2", "U", "two")]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("5 < 6 and 7 > 3", "5 < 6 and 7 > 3"),
        ("<john@example.com> wrote <b>this</b>", "<john@example.com> wrote this"),
        ("<![CDATA[a <b> & c]]>", "a <b> & c"),
        ("a <!DOCTYPE x> <?php y?> b", "a b"),
        ("if a<b and b>c then stop, x <!y && z> 1", "if a<b and b>c then stop, x <!y && z> 1"),
        ("vector<int> v; ... a<b && c>d", "vector<int> v; ... a<b && c>d"),
        ("<own a='1'>x</own> <own/> </other> <td nowrap>y", "x </other> y"),
        ('<a href="x"title=y>z</a><br/><P>p', "z p"),
        ("<![CDATA[</b> <a>]]> x <!-- <!-- <b> </b> --> y", "</b> <a> x y"),
        ("a <!-- b", "a <!-- b"),
        ("&lt;DOC&gt;", "<DOC>"),
    ],
)
def test_an_invalid_tag_is_text(tmp_path, text, wanted):
    found = read(tmp_path / "a.sgml", document("d1", "T", text).encode())
    assert found == [("d1", "T", wanted)]


@pytest.mark.parametrize(
    ("inside", "title", "text", "fields"),
    [
        ("<TEXT>one</TEXT><TEXT>unclosed two", "", "one\nunclosed two", {}),
        ("<DATE>1</DATE><TEXT>one <B>two", "", "one two", {"date": "1"}),
        ("<ABSTRACT>a</ABSTRACT><TEXT></TEXT>", "", "", {"abstract": "a"}),
        ("<SUMMARY>s</SUMMARY><TEXT>t</TEXT><P>p</P>loose", "", "t\np loose", {"summary": "s"}),
        ("<X>1</X><TEXT>t</TEXT><X>2</X><Y></Y>", "", "t", {"x": "1\n2"}),
        ("<HEADLINE>h</HEADLINE><TEXT>t</TEXT><HEADLINE>i</HEADLINE>", "h i", "t", {}),
        ("<TEXT>a <TITLE>T</TITLE> b</TEXT>", "T", "a b", {}),
        ("<TITLE>T</TITLE><TEXT>a <TITLE>U</TITLE> b</TEXT>", "T", "a U b", {}),
        ("<H3>A</H3>p<H3>B</H3>q", "A", "p B q", {}),
        ("<ART><DATE>1</DATE><TEXT>t</TEXT></ART>", "", "t", {"date": "1"}),
    ],
)
def test_no_text_of_a_document_is_lost_or_read_twice(tmp_path, inside, title, text, fields):
    path = tmp_path / "a.sgml"
    path.write_text(f"<DOC><DOCNO> AT&amp;T-1 </DOCNO>{inside}</DOC>")
    (row,) = read_texts(path)
    assert (row.id, row.title, row.text, row.fields) == ("AT&T-1", title, text, fields)


@pytest.mark.parametrize(
    ("topic", "text", "fields"),
    [
        ("<top><num>Number: a&amp;b<title>x<title>y</top>", "x y", {}),
        ("<top><num>a&b</num><title>x</title><own>k</own></top>", "x", {"own": "k"}),
        ('<topic number="a&amp;b" type="n"><wrap><type>t</type><query>x</query></wrap></topic>', "x", {"type": "n\nt"}),
        ("<top><num>a&b<title>x<desc>a<b and b>c<smry>s</top>", "x", {"description": "a<b and b>c", "smry": "s"}),
        (
            '<topic number="a&b"><query>x</query><subtopic>s</subtopic><subtopic>t</subtopic></topic>',
            "x",
            {"subtopic": "s\nt"},
        ),
    ],
)
def test_no_text_of_a_topic_is_lost(tmp_path, topic, text, fields):
    path = tmp_path / "a.xml"
    path.write_text(topic)
    (row,) = read_texts(path)
    assert (row.id, row.text, row.fields) == ("a&b", text, fields)


def test_a_comment_that_one_document_does_not_close_hides_no_other(tmp_path):
    text = "".join(document(f"d{n}", "", f"a <!-- b{n}") for n in range(3))
    text += document("d3", "", "<!-- <b> -->c")
    found = read(tmp_path / "a.sgml", text.encode())
    assert [row[2] for row in found] == ["a <!-- b0", "a <!-- b1", "a <!-- b2", "c"]


@pytest.mark.parametrize(
    "between", ['<?xml version="1.0"?>\n<!DOCTYPE a [\n <!ELEMENT b (c)>\n ]>\n<DOCS a="b">', "<!-- x -->", "\x1a"]
)
def test_declarations_roots_and_comments_may_occur_between_documents(tmp_path, between):
    text = "<!-- -->" + between + document("d1", "T", "a") + between
    assert read(tmp_path / "a.sgml", text.encode()) == [("d1", "T", "a")]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (document("d1", "T", "a </DOC> b"), 1, "</DOC> closes nothing"),
        (document("d1", "T", "<![CDATA[</DOC> a]]> b"), 1, "</DOC> closes nothing"),
        (document("d1", "T", "\na <doc> b"), 1, "<DOC> is not closed before the next one"),
        (document("d1", "T", "a") + "\n<DOC/>", 2, "<DOC> is not closed"),
        (document("d1", "T", "a") + "\n<!-- " + document("d2", "T", "b"), 2, "the comment"),
        (
            document("d1", "T", "a") + "<!-- b -->\n\nloose\n" + document("d2", "T", "b"),
            3,
            "text outside of documents and topics: loose",
        ),
        (document("d1", "T", "a") + "\nlast", 2, "text outside of documents and topics: last"),
        ("<topics>\n<note>x</note><topic>\n", 2, "text outside of documents and topics: x</note>"),
        (document("d1</DOCNO><DOCNO>d2", "T", "a"), 1, "got 2 <DOCNO>, expected one"),
        ("<top><num>1<num>2<title>x</top>", 1, "the topic has two numbers: 1 and 2"),
        ('<topic number="1">loose<query>x</query></topic>', 1, "is outside of elements: loose"),
    ],
)
def test_markup_that_would_lose_text_is_refused(tmp_path, text, line, said):
    path = tmp_path / "a.sgml"
    path.write_text(text)
    with pytest.raises(FormatError, match=said) as caught:
        list(read_texts(path))
    assert caught.value.line == line
    faults = Faults()
    list(read_texts(path, faults))
    assert faults.count


@pytest.mark.slow
def test_a_file_of_one_line_takes_little_memory_and_time_with_its_length(tmp_path):
    path = tmp_path / "a.xml"
    one = document("{}", "T", "some words " * 90)
    path.write_text("<DOCS>" + "".join(one.format(n) for n in range(4_000)) + "</DOCS>")
    tracemalloc.start()
    assert sum(1 for _ in TextReader(TextSource.of(path)).rows()) == 4_000
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < path.stat().st_size / 3


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["<DOC", "<DOC>", "</DOC>", "<!--", "<![CDATA[", "<TEXT ", "<a "])
def test_unclosed_tags_are_read_in_linear_time(tmp_path, mark):
    path = tmp_path / "a.sgml"

    def write(count):
        path.write_text("<DOC><DOCNO>1</DOCNO>" + mark * count + "</DOC>")

    assert_linear(write, lambda _: list(read_texts(path, Faults())), 3000)
