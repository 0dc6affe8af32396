"""Chunking of documents for retrieval.

A chunk contains its position in characters: ``text[chunk.start:chunk.end] == chunk.text``. So
retrieved chunks can be compared with relevant spans independently of the chunking.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from rankgauge.core.arguments import integer, known_name
from rankgauge.core.libraries import library, versions
from rankgauge.corpus.collection import Document
from rankgauge.errors import InputError

Cut: TypeAlias = Callable[[str], Sequence[str]]

# A word with the following blanks, so that the joined pieces equal the text.
_WORD = re.compile(r"^\s+|\S+\s*")
_MARK = "#"
# The end of the id of the first chunk of a document.
FIRST = f"{_MARK}0001"
# chonkie needs UTF-8, which cannot encode lone surrogates: each is replaced by one character.
_HALVES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a text.

    Attributes:
        start: The position of the first character, from 0.
        end: The position after the last character.
        text: The text of the chunk.
    """

    start: int
    end: int
    text: str


@runtime_checkable
class Chunker(Protocol):
    """Protocol of a chunker: a callable from a text to its chunks, in order.

    The optional attribute ``settings`` is a mapping of plain values; equal settings give equal
    chunks. A blank text has no chunks.
    """

    def __call__(self, text: str, /) -> Sequence[Chunk]:
        """Return the chunks of a text."""
        ...


@dataclass(eq=False, repr=False)
class FixedChunker:
    """Chunks of a fixed number of characters, regardless of words; no library is needed.

    Args:
        size: Characters per chunk.
        overlap: The overlap with the previous chunk; less than `size`.

    Raises:
        InputError: If an argument is invalid.

    Example:
        >>> [chunk.text for chunk in FixedChunker(8, 3)("We open at nine.")]
        ['We open ', 'en at ni', ' nine.']
    """

    size: int = 1000
    overlap: int = 0

    def __post_init__(self) -> None:
        integer("overlap", self.overlap, least=0, most=integer("size", self.size) - 1)
        self.settings: Mapping[str, Any] = {"type": "fixed", "size": self.size, "overlap": self.overlap}

    def __call__(self, text: str) -> list[Chunk]:
        """Return the chunks of a text."""
        if not text.strip():
            return []
        # A chunk that starts in the last overlap would be contained in the previous chunk.
        starts = range(0, max(len(text) - self.overlap, 1), self.size - self.overlap)
        return [_part(text, start, min(start + self.size, len(text))) for start in starts]


@dataclass(eq=False, repr=False)
class _ChonkieChunker:
    """Base of chunkers by chonkie; their fields are renamed to the options of chonkie."""

    _shortest: ClassVar[str]  # option of chonkie for the size of the shortest piece

    def __post_init__(self) -> None:
        sizes = {part.name: getattr(self, part.name) for part in fields(self)}
        tokenizer = sizes.pop("tokenizer")
        integer("overlap", sizes.get("overlap", 0), least=0, most=integer("size", sizes["size"]) - 1)
        integer("shortest", sizes.get("shortest", 1))
        cut = _tokenizer_function(tokenizer)
        chonkie = library("chonkie", extra="chunking", of="splitting by tokens and sentences")
        name = type(self).__name__
        options = {f"chunk_{option}": size for option, size in sizes.items() if option != "shortest"}
        if "shortest" in sizes:
            options[self._shortest] = sizes["shortest"]
        self._inner = getattr(chonkie, name)(tokenizer=_chonkie_pieces(cut), **options)
        settings = {
            "type": name.removesuffix("Chunker").lower(),
            **sizes,
            "tokenizer": tokenizer,
            "versions": versions("chonkie"),
        }
        # Two functions may share a name.
        self.settings: Mapping[str, Any] | None = settings if isinstance(tokenizer, str) else None

    def __call__(self, text: str) -> list[Chunk]:
        """Return the chunks of a text."""
        if not text.strip():
            return []
        pieces = self._inner.chunk(_HALVES.sub("\ufffd", text))
        chunks = [_part(text, chunk.start_index, chunk.end_index) for chunk in pieces]
        ends = [0, *(chunk.end for chunk in chunks)]
        gap = any(chunk.start > end for chunk, end in zip(chunks, ends, strict=False))
        if gap or ends[-1] != len(text):
            raise InputError(
                "the pieces of a text, joined, differ from the text",
                where="tokenizer",
                fix="split a text without omitting or adding characters: ''.join(pieces) == text",
            )
        return chunks


@dataclass(eq=False, repr=False)
class TokenChunker(_ChonkieChunker):
    """Chunks of equal token count with overlap, by chonkie (needs ``rankgauge[chunking]``).

    Args:
        size: Tokens per chunk.
        overlap: The overlap with the previous chunk; less than `size`.
        tokenizer: ``word`` (separated by spaces), ``character``, or a function that splits a text
            into pieces, which must equal the text when joined. Nothing is downloaded.

    Raises:
        InputError: If an argument is invalid.
        MissingExtra: If chonkie is not installed.

    Example:
        >>> [chunk.text for chunk in TokenChunker(3, 1)("We open at nine and close at five.")]
        ['We open at ', 'at nine and ', 'and close at ', 'at five.']
    """

    size: int = 256
    overlap: int = 0
    _: KW_ONLY
    tokenizer: str | Cut = "word"


@dataclass(eq=False, repr=False)
class SentenceChunker(_ChonkieChunker):
    """Chunks of as many whole sentences as fit, by chonkie (needs ``rankgauge[chunking]``).

    A sentence ends with a period, question mark, or exclamation mark followed by a space, or with
    the line. A sentence longer than `size` is a separate chunk.

    Args:
        size: Maximum tokens per chunk.
        overlap: Maximum tokens of whole sentences shared with the previous chunk; chonkie counts
            one more per sentence.
        tokenizer: As for :class:`TokenChunker`.
        shortest: Sentences with fewer bytes are merged with an adjacent one.

    Raises:
        InputError: If an argument is invalid.
        MissingExtra: If chonkie is not installed.

    Example:
        >>> text = "We open at nine. We close at five. On Sundays we are closed."
        >>> [chunk.text for chunk in SentenceChunker(8)(text)]
        ['We open at nine. We close at five. ', 'On Sundays we are closed.']
    """

    _shortest = "min_characters_per_sentence"

    size: int = 256
    overlap: int = 0
    _: KW_ONLY
    tokenizer: str | Cut = "word"
    shortest: int = 12


@dataclass(eq=False, repr=False)
class RecursiveChunker(_ChonkieChunker):
    r"""Paragraphs, split further only if they are too long (needs ``rankgauge[chunking]``).

    A text is split into paragraphs and lines; parts longer than `size` into sentences, then at
    commas and brackets, at spaces, and finally anywhere. Adjacent parts are merged as long as they
    fit. Based on chonkie.

    Args:
        size: Maximum tokens per chunk.
        tokenizer: As for :class:`TokenChunker`.
        shortest: Pieces with fewer bytes are merged with an adjacent one.

    Raises:
        InputError: If an argument is invalid.
        MissingExtra: If chonkie is not installed.

    Example:
        >>> text = "Opening hours of the library\n\nWe open at nine. We close at five."
        >>> [chunk.text for chunk in RecursiveChunker(8)(text)]
        ['Opening hours of the library\n\n', 'We open at nine. We close at five.']
    """

    _shortest = "min_characters_per_chunk"

    size: int = 256
    _: KW_ONLY
    tokenizer: str | Cut = "word"
    shortest: int = 24


# ---- chunks as documents


def chunk_documents(documents: Iterable[Document], chunker: Chunker, *, titles: bool = True) -> Iterable[Document]:
    """Return the chunks of documents as documents, generated lazily.

    The third chunk of document ``d7`` has the id ``d7#0003`` and the fields of the document with
    ``{"document": "d7", "start": 812, "end": 1204}``, in characters of the text (without the
    title). A document without text is one chunk if it has a title and `titles` is set; otherwise it
    has no chunks.

    Args:
        documents: The documents. If they can be iterated repeatedly, so can the result.
        chunker: The chunker.
        titles: Whether each chunk includes the title of its document.

    Raises:
        InputError: If a chunk is not part of its text.

    Example:
        >>> from rankgauge.retrievers import FixedChunker
        >>> hours = Document("d7", text="We open at nine.")
        >>> [(chunk.id, chunk.text) for chunk in chunk_documents([hours], FixedChunker(8))]
        [('d7#0001', 'We open '), ('d7#0002', 'at nine.')]
    """
    if not callable(chunker):
        raise InputError(
            f"got {chunker!r:.60}, expected a chunker",
            where="chunk_documents",
            fix="pass a chunker, such as TokenChunker(256, 32)",
        )
    return _ChunkedDocuments(documents, chunker, titles)


@dataclass(frozen=True, eq=False)
class _ChunkedDocuments:
    documents: Iterable[Document]
    chunker: Chunker
    titles: bool

    def __iter__(self) -> Iterator[Document]:
        for document in self.documents:
            title = document.title if self.titles else ""
            chunks: Sequence[Any] = self.chunker(document.text)
            if not chunks and title:
                chunks = [Chunk(0, len(document.text), document.text)]
            for number, chunk in enumerate(chunks, start=1):
                fits = isinstance(chunk, Chunk) and 0 <= chunk.start <= chunk.end <= len(document.text)
                if not fits or document.text[chunk.start : chunk.end] != chunk.text:
                    raise InputError(
                        f"got {chunk!r:.80}, which is not part of the text of {document.id!r}",
                        where="chunker",
                        fix="pass Chunk(start, end, text) with text[start:end] == chunk.text",
                    )
                fields = {"document": document.id, "start": chunk.start, "end": chunk.end}
                yield Document(f"{document.id}{_MARK}{number:04d}", title, chunk.text, {**document.fields, **fields})


# ---- interface to chonkie


def _chonkie_pieces(cut: Cut) -> Any:
    """Return a chonkie tokenizer whose tokens are the pieces of ``cut``.

    Chonkie's own tokenizers drop a blank between chunks of words, which makes offsets wrong. The
    tokens are the pieces themselves, so there is no growing vocabulary or state shared by threads.
    (Some versions of chonkie use any other class only for counting.)
    """
    from chonkie.tokenizer import WordTokenizer

    class Pieces(WordTokenizer):
        def __init__(self) -> None:
            self.vocab = []

        def tokenize(self, text: str) -> Any:
            return list(cut(text))

        encode = tokenize

        def decode(self, tokens: Any) -> str:
            return "".join(tokens)

        def count_tokens(self, text: str) -> int:
            return len(self.tokenize(text))

    return Pieces()


def _part(text: str, start: int, end: int) -> Chunk:
    return Chunk(start, end, text[start:end])


_CUTS: Mapping[str, Cut] = {"word": _WORD.findall, "character": list}


def _tokenizer_function(tokenizer: Any) -> Cut:
    if isinstance(tokenizer, str):
        known_name("tokenizer", tokenizer, _CUTS)
        return _CUTS[tokenizer]
    if not callable(tokenizer):
        raise InputError(
            f"got {tokenizer!r:.60}, expected a tokenizer",
            where="tokenizer",
            fix="name 'word' or 'character', or pass a function that splits a text into pieces",
        )
    return tokenizer  # its pieces are checked with the chunks
