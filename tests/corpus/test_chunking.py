"""Chunks cover their text completely and have the requested length."""

import itertools
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from rankgauge.corpus.chunking import (
    Chunk,
    Chunker,
    FixedChunker,
    RecursiveChunker,
    SentenceChunker,
    TokenChunker,
    chunk_documents,
)
from rankgauge.corpus.collection import Document
from rankgauge.errors import InputError, MissingExtra, UnknownName

pytest.importorskip("chonkie", reason="without chonkie (NumPy 2) nothing is cut")

TEXT = (
    "We open at nine.  We close at five! Do you lend bikes? No.\n\n"
    "Für Bücher: 文書 😀 at the desk, (or by post).\r\n\tSundays closed.\n"
)
# Texts of words, whitespace, and punctuation.
_PARTS = ("open", "a", "Bücher", "文書", "😀", ".", ". ", "? ", " ", "  ", "\n", "\n\n", "\t", ",", "\ud800")
texts = st.lists(st.sampled_from(_PARTS)).map("".join)
sizes = st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1)))


def made(kind, size, overlap=0, tokenizer="word"):
    if kind is FixedChunker:
        return kind(size, overlap)
    if kind is RecursiveChunker:
        return kind(size, tokenizer=tokenizer)
    return kind(size, overlap, tokenizer=tokenizer)


KINDS = [FixedChunker, TokenChunker, SentenceChunker, RecursiveChunker]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(text=texts, size=sizes, tokenizer=st.sampled_from(["word", "character"]))
def test_chunks_are_the_text_from_end_to_end(kind, text, size, tokenizer):
    chunks = made(kind, *size, tokenizer)(text)
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.text
    if not text.strip():
        assert chunks == []
        return
    assert chunks[0].start == 0
    assert chunks[-1].end == len(text)
    for early, late in itertools.pairwise(chunks):
        assert early.start < late.start <= early.end < late.end


@given(text=texts, size=sizes)
def test_fixed_chunks_have_the_size_and_overlap_asked_for(text, size):
    length, overlap = size
    chunks = FixedChunker(length, overlap)(text)
    assert all(len(chunk.text) == length for chunk in chunks[:-1])
    assert all(len(chunk.text) <= length for chunk in chunks)
    assert all(early.end - late.start == overlap for early, late in itertools.pairwise(chunks))


@given(text=texts, size=sizes)
def test_token_chunks_have_the_size_and_overlap_asked_for(text, size):
    length, overlap = size
    # Independent check: the words, with leading whitespace as one of them.
    lead = 1 if text[:1].isspace() else 0
    chunks = TokenChunker(length, overlap)(text)
    words = [len(chunk.text.split()) + (lead if chunk.start == 0 else 0) for chunk in chunks]
    assert all(count == length for count in words[:-1])
    assert all(count <= length for count in words)
    for early, late in itertools.pairwise(chunks):
        shared = text[late.start : early.end]
        assert len(shared.split()) + (lead if late.start == 0 else 0) == overlap


def test_characters_as_tokens_are_fixed_chunks():
    assert TokenChunker(20, 5, tokenizer="character")(TEXT) == FixedChunker(20, 5)(TEXT)


def test_sentences_stay_whole_and_long_ones_are_not_cut():
    found = [chunk.text for chunk in SentenceChunker(9, shortest=1)(TEXT)]
    assert found[0] == "We open at nine.  We close at five! "
    assert found[1].startswith("Do you lend bikes? ")
    long = "one two three four five six seven eight nine ten. Short one here."
    assert [len(c.text.split()) for c in SentenceChunker(4)(long)] == [10, 3]


def test_sentences_overlap_by_whole_sentences():
    text = "One two three. Four five six. Seven eight nine. "
    found = [chunk.text for chunk in SentenceChunker(6, 4)(text)]
    assert found == ["One two three. Four five six. ", "Four five six. Seven eight nine. "]


def test_recursive_chunks_prefer_paragraphs_to_sentences_to_words():
    text = "One two three.\n\nFour five six. Seven eight nine."
    assert [c.text for c in RecursiveChunker(6, shortest=1)(text)] == [
        "One two three.\n\n",
        "Four five six. Seven eight nine.",
    ]
    assert [c.text for c in RecursiveChunker(3, shortest=1)(text)] == [
        "One two three.\n\n",
        "Four five six. ",
        "Seven eight nine.",
    ]
    assert all(len(c.text.split()) <= 2 for c in RecursiveChunker(2, shortest=1)(text))


def test_a_tokenizer_may_be_any_function_that_cuts():
    halves = TokenChunker(1, tokenizer=lambda text: [text[:4], text[4:]])
    assert [chunk.text for chunk in halves("abcdefgh")] == ["abcd", "efgh"]
    assert halves.settings is None


def test_a_tokenizer_that_loses_letters_is_named():
    with pytest.raises(InputError, match="joined, differ from the text") as caught:
        TokenChunker(2, tokenizer=str.split)("a b c")
    assert "''.join(pieces) == text" in caught.value.fix


def test_settings_say_what_was_chosen():
    assert FixedChunker(8, 2).settings == {"type": "fixed", "size": 8, "overlap": 2}
    settings = dict(TokenChunker(8, 2).settings)
    assert settings.pop("versions").keys() == {"chonkie"}
    assert settings == {"type": "token", "size": 8, "overlap": 2, "tokenizer": "word"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("size", [0, -1, True, 2.5, "8", None], ids=repr)
def test_an_invalid_chunk_size_is_refused(kind, size):
    with pytest.raises(InputError, match="size=") as caught:
        kind(size)
    assert caught.value.fix == "pass a whole number from 1"


@pytest.mark.parametrize("kind", [FixedChunker, TokenChunker, SentenceChunker])
@pytest.mark.parametrize("overlap", [8, 9, -1, 0.5], ids=repr)
def test_an_overlap_of_the_whole_chunk_or_a_negative_one_is_refused(kind, overlap):
    with pytest.raises(InputError, match="overlap"):
        kind(8, overlap)


def test_an_unknown_tokenizer_is_refused_without_a_download():
    with pytest.raises(UnknownName, match="gpt2"):
        TokenChunker(8, tokenizer="gpt2")
    with pytest.raises(InputError, match="expected a tokenizer"):
        TokenChunker(8, tokenizer=7)


def test_without_chonkie_the_install_command_is_shown(monkeypatch):
    monkeypatch.setitem(sys.modules, "chonkie", None)
    with pytest.raises(MissingExtra, match=r"rankgauge\[chunking\]"):
        TokenChunker(8)
    assert FixedChunker(8)("It needs none.")


# ---- documents


def test_chunks_of_documents_have_their_offsets():
    documents = [Document("d7", "Hours", "We open at nine.", {"language": "en"}), Document("d8")]
    chunks = list(chunk_documents(documents, FixedChunker(8)))
    assert [chunk.id for chunk in chunks] == ["d7#0001", "d7#0002"]
    assert chunks[1].fields == {"language": "en", "document": "d7", "start": 8, "end": 16}
    assert [chunk.full_text for chunk in chunks] == ["Hours. We open ", "Hours. at nine."]


def test_titles_can_be_left_out():
    documents = [Document("d7", "Hours", "We open."), Document("d8", "Only a title")]
    assert [c.full_text for c in chunk_documents(documents, FixedChunker(9), titles=False)] == ["We open."]
    with_titles = chunk_documents(documents, FixedChunker(9))
    assert [c.full_text for c in with_titles] == ["Hours. We open.", "Only a title"]


def test_chunks_come_one_by_one_and_as_often_as_the_documents():
    asked = []

    class Lazy:
        def __iter__(self):
            for number in range(3):
                asked.append(number)
                yield Document(f"d{number}", text="one two three four")

    chunks = chunk_documents(Lazy(), TokenChunker(2))
    assert next(iter(chunks)).id == "d0#0001"
    assert asked == [0]
    assert len(list(chunks)) == len(list(chunks)) == 6


@pytest.mark.parametrize(
    "wrong",
    [Chunk(0, 99, "x"), Chunk(1, 3, "We"), Chunk(-2, 3, "We"), "We open", None],
    ids=["beyond", "shifted", "negative", "text", "none"],
)
def test_a_chunk_that_is_no_part_of_its_text_is_refused(wrong):
    with pytest.raises(InputError, match="not part of the text of 'd1'"):
        list(chunk_documents([Document("d1", text="We open.")], lambda _: [wrong]))


def test_an_object_that_is_no_chunker_is_refused():
    with pytest.raises(InputError, match="expected a chunker"):
        chunk_documents([], 512)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_all_are_chunkers(kind):
    assert isinstance(kind(8), Chunker)


def test_offsets_of_a_chunk_replace_fields_of_the_same_name():
    document = Document("d1", text="We open at nine.", fields={"start": "9:00", "place": "hall"})
    (first, _) = chunk_documents([document], FixedChunker(8))
    assert first.fields == {"start": 0, "end": 8, "document": "d1", "place": "hall"}


@pytest.mark.parametrize("places", [[(0, 2), (3, 7)], [(1, 7)], [(0, 2), (2, 6)]], ids=str)
def test_a_library_that_leaves_out_a_part_is_found_out(places, monkeypatch):
    class Leaves:
        def chunk(self, text):
            return [SimpleNamespace(start_index=start, end_index=end) for start, end in places]

    chunker = TokenChunker(3)
    monkeypatch.setattr(chunker, "_inner", Leaves())
    with pytest.raises(InputError, match="joined, differ from the text"):
        chunker("We open")
