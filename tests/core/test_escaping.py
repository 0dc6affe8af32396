"""External text in every format: special text is escaped, and harmless text is unchanged."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given, strategies as st

from rankgauge.core.escaping import (
    for_annotation,
    for_csv,
    for_json,
    for_latex,
    for_markdown,
    for_terminal,
    templates,
    visible,
)
from rankgauge.rendering.tables import Table, render_table

# Arbitrary text, and text made of special characters of a format.
_HOT = st.sampled_from(
    [
        *"\x1b\r\n\t\a\x9b\x00\x7f\x85\u2028\u202e\u2066\u200f\ud800\ufffe",
        *"|\\`*_<>&\"'#%$:,;=+-@[]{}~^! aé日",
        *("::error::", "##[error]", "[bold]", "```"),
    ]
)
TEXTS = st.one_of(st.text(max_size=20), st.lists(_HOT, max_size=8).map("".join))
# Characters that XML forbids, other controls, and bidirectional overrides.
_SHOWN_ESCAPED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


@given(TEXTS)
@example("::error::x")
@example("x\n::error::y")
@example("a ##[error]b")
def test_a_terminal_shows_each_character_and_acts_on_none(text):
    shown = for_terminal(text)
    assert shown.isprintable()
    assert for_terminal(shown) == shown
    assert not shown.lstrip().startswith("::")
    assert "##[" not in shown
    if text.isprintable() and "::" not in text and "##[" not in text:
        assert shown == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("a\r\nb\x9b", r"a\r\nb\x9b"),
        ("\u202egnp", r"\u202egnp"),
        ("\ud800", r"\ud800"),
        ("std::sort é 日本 😀", "std::sort é 日本 😀"),
    ],
)
def test_only_unprintable_characters_are_escaped(text, shown):
    assert visible(text) == for_terminal(text) == shown


class _Text(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.parts = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.parts += [value for _, value in attrs]

    def handle_data(self, data):
        self.parts.append(data)


@given(TEXTS)
def test_html_parses_to_the_text_in_an_element_and_in_an_attribute(text):
    page = templates().from_string('<p title="{{ x }}">{{ x }}</p>').render(x=text)
    found = _Text()
    found.feed(page)
    found.close()
    assert "".join(found.parts) == 2 * _SHOWN_ESCAPED.sub(lambda at: visible(at[0]), text)
    assert found.tags == ["p"]
    assert "\n" not in page
    page.encode()


@given(TEXTS)
def test_xml_is_well_formed_and_keeps_the_text(text):
    document = templates().from_string('<a b="{{ x }}">{{ x }}</a>').render(x=text)
    shown = ET.fromstring(document).text or ""
    assert shown == _SHOWN_ESCAPED.sub(lambda found: visible(found[0]), text)


@given(st.lists(st.tuples(TEXTS, st.floats(0, 1)), min_size=1, max_size=4), TEXTS, TEXTS)
def test_a_markdown_table_keeps_its_columns_and_rows(rows, title, note):
    table = Table(("run", "value"), tuple(rows), title=title, notes=(note,))
    lines = render_table(table, "markdown").split("\n")
    drawn = [line for line in lines if line.startswith("| ")]
    assert len(drawn) == len(rows) + 2
    # A cell ends at a bar that is not escaped by a backslash.
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in drawn} == {3}
    assert len(lines) == len(drawn) + 3 + 2 * bool(title)
    assert "\r" not in "".join(lines)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", r"a\|b"),
        ("`x` *y* _z_", r"\`x\` \*y\* \_z\_"),
        ("&lt; ~~x~~ $a$", r"\&lt; \~\~x\~\~ \$a\$"),
        ("# not a heading", r"\# not a heading"),
        ("+0.123 -0.5 #1", "+0.123 -0.5 #1"),
        ("two\nlines", r"two\\nlines"),
    ],
)
def test_markdown_shows_the_text_itself(text, escaped):
    assert for_markdown(text) == escaped


@given(TEXTS)
def test_special_characters_of_latex_are_escaped(text):
    escaped = for_latex(text)
    assert escaped.isprintable()
    commands = r"\\[a-z]+\{2?\}|\\[{}$&#%_]|\$(?:-|\\times|\\geq|\\leq)\$|\{[\[*]\}|-\{\}-"
    bare = re.sub(commands, "", escaped)
    assert not set(bare) & set("\\{}$&#%_~^<>|`[*")


@given(TEXTS)
def test_an_annotation_is_one_line_and_its_text_can_be_decoded(text):
    line, value = for_annotation(text), for_annotation(text, is_property=True)
    assert line.isprintable()
    assert not set(value) & set(":,")
    for sign in "\r\n":
        assert sign not in line
    back = line.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
    assert back == "".join(c if c in "\r\n" else visible(c) for c in text)


@given(st.lists(TEXTS, min_size=1, max_size=3), st.floats(-9, 9))
@example(["=1+1"], -0.5)
@example(["\t=1+1"], -0.5)
@example(["a;=1+1"], 0.0)
def test_no_cell_of_csv_is_a_formula_and_numbers_stay_numbers(texts, number):
    table = Table((*texts, "value"), ((*texts, number),))
    rows = list(csv.reader(io.StringIO(render_table(table, "csv"))))
    assert [len(row) for row in rows] == [len(texts) + 1] * 2
    assert float(rows[1][-1]) == number
    for cell in (*rows[0], *rows[1][:-1]):
        assert not re.match("[=+@\t\r-]", cell)
        assert not re.search(";[=+@-]", cell)


def test_a_cell_of_csv_that_is_no_formula_stays_as_it_is():
    for text in ("d-1", "a=b", "x@y", "bm25; k1=0.9", "'quoted"):
        assert for_csv(text) == text


@given(TEXTS)
def test_json_keeps_its_values_without_control_characters(text):
    written = for_json(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(written) == {text: text}
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e]", written)
    assert "##[" not in written
    written.encode()
