"""Base of all vector stores: they index documents as vectors and return the nearest.

A store of its own is filled by ``index()``; one that exists is searched as it is. What a store
itself has to know, how to make, fill and ask a collection, is in a file for each.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

import numpy as np
import numpy.typing as npt

from rankgauge.core.arguments import choice
from rankgauge.core.http_client import EndpointError
from rankgauge.core.libraries import versions
from rankgauge.core.redaction import Secrets, redact
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.retrievers.base import CompositeRetriever, batches, declared, not_indexed
from rankgauge.retrievers.encoders import encoder_of

Vectors = npt.NDArray[np.float32]
Row = tuple[str, float]

SIMILARITIES = ("cosine", "dot", "l2")
_BATCH = 256
# How much deeper a collection of chunks is read to find k documents.
_DEEPER = 64
_QUERIES = 64


class Existing(NamedTuple):
    """Properties of a collection that a store reports; None for unknown ones."""

    similarity: str | None
    dimensions: int | None


@dataclass(eq=False, repr=False, kw_only=True)
class VectorStore(CompositeRetriever, ABC):
    """A retriever over a vector store.

    Rankings: by score, higher is better, then by document id. The score is the cosine, the inner
    product, or the Euclidean distance with a minus. Under the cosine a vector of zeros has no
    direction: such a document is not indexed and such a query finds nothing.

    Args:
        encoder: The encoder: an object with ``encode_documents`` and ``encode_queries``, or a
            function from texts to vectors.
        collection: The name of the collection or table.
        similarity: ``"cosine"``, ``"dot"`` or ``"l2"``.
        existing: Search an existing collection or table unchanged; ``index()`` only checks it.
        replace: Drop an existing collection or table of that name, even one made by others.
        id_field: The field of document ids; None for the store's own id.
        filter_field: Search only documents whose field of that name equals that of the query;
            queries without it search all.

    Raises:
        InputError: For options that contradict each other.
        UnknownName: For an unknown similarity.
    """

    PARTS = ("encoder",)
    # The distributions whose versions decide.
    LIBRARIES: ClassVar[tuple[str, ...]]

    encoder: Any = field(kw_only=False)
    collection: str = "rankgauge"
    similarity: str = "cosine"
    existing: bool = False
    replace: bool = False
    id_field: str | None = "id"
    filter_field: str | None = None

    def __post_init__(self) -> None:
        if self.existing and self.replace:
            raise InputError(
                "existing=True searches the existing collection, replace=True drops it",
                where=self.TYPE, fix="omit one of them",
            )  # fmt: skip
        if not self.collection or not isinstance(self.collection, str):
            raise InputError(
                f"got {self.collection!r} for a name", where=self.TYPE, fix='collection="rankgauge"'
            )
        if self.filter_field is not None and self.filter_field == self.id_field:
            raise InputError(
                f"{self.filter_field!r} holds the document id, it cannot be filtered by",
                where=self.TYPE, fix="name another id_field or filter_field",
            )  # fmt: skip
        self.encoder = encoder_of(self.encoder)
        self.similarity = choice("similarity", self.similarity, SIMILARITIES)
        self._secrets = Secrets()
        self._server: str | None = None  # the URL of a server, without what may be secret
        self._folder: Path | None = None  # None in memory and for a server
        self._remove: Callable[[], object] | None = None
        self._made = False  # whether the collection is this object's own
        self._ready = False
        self._dimensions: int | None = None

    # ---- the contract of a retriever

    def index(self, documents: Iterable[Document]) -> None:
        """Make the collection and fill it; an existing one is only looked at.

        Raises:
            InputError: If there is a collection of that name that this object did not make, or if
                there is none where it should exist.
        """
        self._ready = False
        self._dimensions = None
        if self.existing:
            with self._calling():
                self._read_description()
            return
        with self._calling():
            self._clear()
        for batch in batches(documents, _BATCH):
            self._take(batch)
        if self._made:
            with self._calling():
                self._finish()
        self._ready = True

    def search(self, queries: Sequence[Query], k: int) -> list[list[Row]]:
        """At most `k` documents for each query, best first, with scores.

        Raises:
            InputError: If nothing was indexed, or the encoder's vectors do not fit the collection.
        """
        if not self._ready:
            if not self.existing:
                raise not_indexed(self)
            with self._calling():
                self._read_description()
        rankings: list[list[Row]] = [[] for _ in queries]
        if not queries or k < 1 or not (self._made or self.existing):
            return rankings
        vectors = self._encoded("encode_queries", [query.text for query in queries])
        self._fits(vectors)
        findable = self._directed(vectors)
        for value, places in self._groups(queries, findable):
            for some in batches(places, _QUERIES):
                with self._calling():
                    found = self._ranked(vectors[some], k, value)
                for place, ranking in zip(some, found, strict=True):
                    rankings[place] = ranking
        return rankings

    @property
    def settings(self) -> Mapping[str, Any] | None:
        """What decides about rankings; None for an existing collection, which anyone may change."""
        parts = declared(self.encoder)
        if self.existing or parts is None:
            return None
        return {
            "type": self.TYPE,
            "encoder": parts[0],
            "similarity": self.similarity,
            "filter_field": self.filter_field,
            **({} if self._server is None else {"server": self._server}),
            **self._options(),
            "versions": versions(*self.LIBRARIES),
        }

    @property
    def size(self) -> int | None:
        """Bytes of the folder, with all collections in it; None in memory and for a server."""
        return None if self._folder is None else folder_size(self._folder)

    def close(self) -> None:
        """Close files and connections; a folder without a name is removed, all else stays."""
        self._ready = False
        self._close()
        if self._remove is not None:
            self._remove()

    # ---- what each store knows

    @abstractmethod
    def _described(self) -> Existing | None:
        """Properties of the collection; None without one."""

    @abstractmethod
    def _create(self, dimensions: int) -> None:
        """Make the collection."""

    @abstractmethod
    def _drop(self) -> None:
        """Remove the collection."""

    @abstractmethod
    def _add(self, ids: list[str], vectors: Vectors, values: list[Any]) -> None:
        """Put documents in: ids, vectors, and what can be filtered by (None for nothing)."""

    @abstractmethod
    def _nearest(self, vectors: Vectors, limit: int, value: Any) -> list[list[Row]]:
        """Ids and scores for each vector, of documents with that value (None for all)."""

    @abstractmethod
    def _close(self) -> None:
        """Close files and connections."""

    def _finish(self) -> None:
        """Last step after all documents are added, such as an index."""

    def _options(self) -> dict[str, Any]:
        """Settings of its own."""
        return {}

    def _score(self, distance: float) -> float:
        """The score of what most stores return: 1 - similarity, or the square of the distance."""
        return -math.sqrt(max(distance, 0.0)) if self.similarity == "l2" else 1.0 - distance

    # ---- folders and servers

    def _in_folder(self, location: str | None) -> str:
        """Note a folder, or make one that is removed by close()."""
        if location is None:
            location = tempfile.mkdtemp(prefix="rankgauge-")
            # At the latest when this object is garbage collected.
            self._remove = weakref.finalize(self, shutil.rmtree, location, ignore_errors=True)
        self._folder = Path(location)
        return location

    def _at(self, url: str, key_env: str | None) -> str | None:
        """Note the URL of a server, and return the key for it; neither is shown as it is."""
        key = secret_of(key_env, self.TYPE)
        self._secrets.add(key or "", "authorization", "api-key", key_env or "key")
        parts = urlsplit(url)
        user, host = parts.netloc.rpartition("@")[::2]
        name, _, password = (unquote(part) for part in user.partition(":"))
        if password:
            self._secrets.add_login(name, password)
        else:
            self._secrets.add(name)
        for option, value in parse_qsl(parts.query):
            self._secrets.add(value, option)
        self._server = urlunsplit((parts.scheme, host, parts.path, "", ""))
        return key

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """Call the client library; secrets are removed from its errors."""
        try:
            yield
        except RankgaugeError:
            raise
        except Exception as error:
            text = str(error)
            shown = redact(self._secrets.redact(text))
            if shown == text:
                raise
            raise EndpointError(
                f"{type(error).__name__}: {shown}", where=self._server or self.TYPE,
                fix="see the message of the server", retryable=True,
            ) from None  # fmt: skip

    # ---- filling

    def _clear(self) -> None:
        if not self._made and not self.replace:
            if self._described() is not None:
                raise InputError(
                    f"collection {self.collection!r} already exists", where=self.TYPE,
                    fix="search it with existing=True, drop it with replace=True, or give another "
                    "name",
                )  # fmt: skip
        elif self._described() is not None:
            self._drop()
        self._made = False

    def _take(self, batch: list[Document]) -> None:
        vectors = self._encoded("encode_documents", [document.whole for document in batch])
        if not self._made:
            with self._calling():
                self._create(vectors.shape[1])
            self._made = True
            self._dimensions = vectors.shape[1]
        self._fits(vectors)
        kept = self._directed(vectors)
        if kept.size:
            some = [batch[place] for place in kept]
            values = [self._value(document.fields) for document in some]
            with self._calling():
                self._add([document.id for document in some], vectors[kept], values)

    def _directed(self, vectors: Vectors) -> npt.NDArray[np.intp]:
        """Return the places of vectors that can be compared."""
        if self.similarity != "cosine":
            return np.arange(len(vectors))
        return np.flatnonzero(np.linalg.norm(vectors, axis=1) > 0)

    def _value(self, fields: Mapping[str, Any]) -> Any:
        value = fields.get(self.filter_field) if self.filter_field else None
        return value if isinstance(value, str | int) else None

    # ---- searching

    def _read_description(self) -> None:
        found = self._described()
        if found is None:
            raise InputError(
                f"there is no collection {self.collection!r}", where=self.TYPE,
                fix="name an existing one, or omit existing=True to create it",
            )  # fmt: skip
        if found.similarity not in {None, self.similarity}:
            raise InputError(
                f"collection {self.collection!r} was created for {found.similarity!r}, expected "
                f"{self.similarity!r}",
                where=self.TYPE, fix=f"similarity={found.similarity!r}",
            )  # fmt: skip
        self._dimensions = found.dimensions
        self._ready = True

    def _encoded(self, side: str, texts: list[str]) -> Vectors:
        encoded = getattr(self.encoder, side)(texts)
        try:
            vectors = np.asarray(encoded, dtype=np.float32)
        except (TypeError, ValueError):  # rows of several lengths, or no numbers
            vectors = np.zeros(0, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise InputError(
                f"the encoder returned {vectors.shape if vectors.size else type(encoded).__name__} "
                f"for {len(texts)} texts", where="encoder",
                fix="return one vector for each text, all of one length",
            )  # fmt: skip
        if not np.isfinite(vectors).all():
            raise InputError(
                "the encoder returned numbers that are not finite", where="encoder",
                fix="check the texts; return zeros for a text without content",
            )  # fmt: skip
        return vectors

    def _fits(self, vectors: Vectors) -> None:
        if self._dimensions not in {None, vectors.shape[1]}:
            raise InputError(
                f"the encoder gives vectors of {vectors.shape[1]} numbers, those of collection "
                f"{self.collection!r} have {self._dimensions}",
                where=self.TYPE, fix="use the encoder with which the collection was filled",
            )  # fmt: skip

    def _groups(
        self, queries: Sequence[Query], places: npt.NDArray[np.intp]
    ) -> list[tuple[Any, list[int]]]:
        """Return the places of queries that are asked in the same way, by what they filter by."""
        groups: dict[tuple[type, Any], list[int]] = {}
        for place in places.tolist():
            given = queries[place].fields.get(self.filter_field) if self.filter_field else None
            if given is not None and not isinstance(given, str | int):
                raise InputError(
                    f"got {given!r:.60} to filter by, expected text or a whole number",
                    where=f"query {queries[place].id!r}, field {self.filter_field!r}",
                    fix="remove the field from the query, or give one value",
                )
            # True and 1 are one key of a mapping, and two values.
            groups.setdefault((type(given), given), []).append(place)
        return [(given, group) for (_, given), group in groups.items()]

    def _ranked(self, vectors: Vectors, k: int, value: Any) -> list[list[Row]]:
        """Rankings of documents, each at its best place: a collection may hold chunks of them."""
        limit = k
        while True:
            found = self._nearest(vectors, limit, value)
            rankings = [_documents_of(rows) for rows in found]
            enough = all(
                len(ranking) >= k or len(rows) < limit
                for ranking, rows in zip(rankings, found, strict=True)
            )
            if enough or limit >= k * _DEEPER:
                return [ranking[:k] for ranking in rankings]
            limit *= 4


def folder_size(path: Path) -> int:
    """Bytes of all files in a folder, or of a file."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _documents_of(rows: Iterable[Row]) -> list[Row]:
    best: dict[str, float] = {}
    for name, score in rows:
        if name not in best or score > best[name]:
            best[name] = score
    return sorted(best.items(), key=lambda row: (-row[1], row[0]))


def secret_of(variable: str | None, where: str) -> str | None:
    """Return an API key from the environment."""
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise InputError(
            f"the environment variable {variable!r} is not set", where=where,
            fix=f"export {variable}=... with the key of the server",
        )  # fmt: skip
    return key


def id_in(payload: Any, field: str, where: str) -> str:
    """Return a document id from what was stored with a vector."""
    found = (payload or {}).get(field)
    if found is None:
        known = ", ".join(sorted(payload or {})) or "nothing"
        raise InputError(
            f"a hit has no document id in {field!r}; it has {known}", where=where,
            fix="name the field that contains it: id_field=...",
        )  # fmt: skip
    return str(found)


def text_of(value: Any) -> str | None:
    """Return a value to filter by in a column of text: as SQL would cast it."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower()
