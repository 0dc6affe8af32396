"""Base of all vector stores: they index documents as vectors and return the nearest.

``index()`` creates and fills a collection; an existing collection is searched unchanged. Subclasses
implement how to create, fill, and search a collection.
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
from rankgauge.core.text import many
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.retrievers.base import CompositeRetriever, batches, not_indexed, part_settings
from rankgauge.retrievers.encoders import encoder_of

Vectors = npt.NDArray[np.float32]
Row = tuple[str, float]

SIMILARITIES = ("cosine", "dot", "l2")
_BATCH = 256
# Maximum hits to request, as a multiple of k, to find k documents in a collection of chunks.
_DEEPER = 64
_QUERIES = 64


class Existing(NamedTuple):
    """Properties of a collection reported by a store; None if unknown."""

    similarity: str | None
    dimensions: int | None


@dataclass(eq=False, repr=False, kw_only=True)
class VectorStore(CompositeRetriever, ABC):
    """A retriever over a vector store.

    Documents are ranked by score, higher is better, then by document id. The score is the cosine,
    the inner product, or the negative Euclidean distance. The cosine of a zero vector is undefined:
    documents with zero vectors are not indexed, and queries with zero vectors have no results.

    Args:
        encoder: The encoder: an object with ``encode_documents`` and ``encode_queries``, or a
            function from texts to vectors.
        collection: The name of the collection or table.
        similarity: ``"cosine"``, ``"dot"``, or ``"l2"``.
        existing: Whether to search an existing collection or table unchanged; ``index()`` only
            checks it.
        replace: Whether to drop an existing collection or table of this name, even if created
            elsewhere.
        id_field: The field of document ids; None for the store's own id.
        filter_field: Search only documents whose field of this name equals the same field of the
            query; queries without the field search all.

    Raises:
        InputError: If options are invalid or incompatible.
        UnknownName: For an unknown similarity.
    """

    PARTS = ("encoder",)
    # Distributions whose versions affect rankings.
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
                f"got {self.collection!r} for the name",
                where=self.TYPE,
                fix='collection="rankgauge"',
            )
        if self.filter_field is not None and self.filter_field == self.id_field:
            raise InputError(
                f"{self.filter_field!r} is both id_field and filter_field",
                where=self.TYPE, fix="name two different fields",
            )  # fmt: skip
        self.encoder = encoder_of(self.encoder)
        self.similarity = choice("similarity", self.similarity, SIMILARITIES)
        self._secrets = Secrets()
        self._server: str | None = None  # the server URL without secrets
        self._folder: Path | None = None  # None in memory and for a server
        self._remove: Callable[[], object] | None = None
        self._made = False  # whether this object created the collection
        self._ready = False
        self._dimensions: int | None = None

    # ---- retriever protocol

    def index(self, documents: Iterable[Document]) -> None:
        """Create and fill the collection; with ``existing=True``, only check it.

        Raises:
            InputError: If a collection of this name exists that this object did not create, or an
                existing collection is missing.
        """
        self._ready = False
        self._dimensions = None
        if self.existing:
            with self._redacting_errors():
                self._read_description()
            return
        with self._redacting_errors():
            self._clear()
        for batch in batches(documents, _BATCH):
            self._add_batch(batch)
        if self._made:
            with self._redacting_errors():
                self._finish()
        self._ready = True

    def search(self, queries: Sequence[Query], k: int) -> list[list[Row]]:
        """Return at most `k` documents for each query, best first, with scores.

        Raises:
            InputError: Before indexing, or if the vectors of the encoder do not fit the collection.
        """
        if not self._ready:
            if not self.existing:
                raise not_indexed(self)
            with self._redacting_errors():
                self._read_description()
        rankings: list[list[Row]] = [[] for _ in queries]
        if not queries or k < 1 or not (self._made or self.existing):
            return rankings
        vectors = self._encoded("encode_queries", [query.text for query in queries])
        self._check_dimensions(vectors)
        findable = self._comparable(vectors)
        for value, places in self._groups(queries, findable):
            for some in batches(places, _QUERIES):
                with self._redacting_errors():
                    found = self._rankings(vectors[some], k, value)
                for place, ranking in zip(some, found, strict=True):
                    rankings[place] = ranking
        return rankings

    @property
    def settings(self) -> Mapping[str, Any] | None:
        """Settings that determine rankings; None for an existing collection, which may change."""
        parts = part_settings(self.encoder)
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
        """Bytes of the folder with all its collections; None in memory and for a server."""
        return None if self._folder is None else folder_size(self._folder)

    def close(self) -> None:
        """Close files and connections; a temporary folder is removed, other data is kept."""
        self._ready = False
        self._close()
        if self._remove is not None:
            self._remove()

    # ---- implemented by each store

    @abstractmethod
    def _describe(self) -> Existing | None:
        """Return the properties of the collection; None if it does not exist."""

    @abstractmethod
    def _create(self, dimensions: int) -> None:
        """Create the collection."""

    @abstractmethod
    def _drop(self) -> None:
        """Remove the collection."""

    @abstractmethod
    def _add(self, ids: list[str], vectors: Vectors, values: list[Any]) -> None:
        """Add documents: ids, vectors, and filter values (None for no value)."""

    @abstractmethod
    def _nearest(self, vectors: Vectors, limit: int, value: Any) -> list[list[Row]]:
        """Return ids and scores for each vector, among documents with the value (None for all)."""

    @abstractmethod
    def _close(self) -> None:
        """Close files and connections."""

    def _finish(self) -> None:
        """Finish after all documents are added, for example by building an index."""

    def _options(self) -> dict[str, Any]:
        """Return the settings specific to the store."""
        return {}

    def _score(self, distance: float) -> float:
        """Convert a distance of most stores (1 - similarity, or squared L2) to a score."""
        return -math.sqrt(max(distance, 0.0)) if self.similarity == "l2" else 1.0 - distance

    # ---- folders and servers

    def _record_folder(self, location: str | None) -> str:
        """Record a folder, or create a temporary folder that close() removes."""
        if location is None:
            location = tempfile.mkdtemp(prefix="rankgauge-")
            # Removed at the latest when this object is garbage collected.
            self._remove = weakref.finalize(self, shutil.rmtree, location, ignore_errors=True)
        self._folder = Path(location)
        return location

    def _record_server(self, url: str, key_env: str | None) -> str | None:
        """Record the URL of a server, and return its key; messages show neither unredacted."""
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
    def _redacting_errors(self) -> Iterator[None]:
        """Redact secrets in errors of the client library."""
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
                fix="see the server's message", retryable=True,
            ) from None  # fmt: skip

    # ---- filling

    def _clear(self) -> None:
        if not self._made and not self.replace:
            if self._describe() is not None:
                raise InputError(
                    f"collection {self.collection!r} already exists", where=self.TYPE,
                    fix="search it with existing=True, drop it with replace=True, or pass another "
                    "name",
                )  # fmt: skip
        elif self._describe() is not None:
            self._drop()
        self._made = False

    def _add_batch(self, batch: list[Document]) -> None:
        vectors = self._encoded("encode_documents", [document.full_text for document in batch])
        if not self._made:
            with self._redacting_errors():
                self._create(vectors.shape[1])
            self._made = True
            self._dimensions = vectors.shape[1]
        self._check_dimensions(vectors)
        kept = self._comparable(vectors)
        if kept.size:
            some = [batch[place] for place in kept]
            values = [self._value(document.fields) for document in some]
            with self._redacting_errors():
                self._add([document.id for document in some], vectors[kept], values)

    def _comparable(self, vectors: Vectors) -> npt.NDArray[np.intp]:
        """Return the positions of vectors that can be compared; zero vectors have no cosine."""
        if self.similarity != "cosine":
            return np.arange(len(vectors))
        return np.flatnonzero(np.linalg.norm(vectors, axis=1) > 0)

    def _value(self, fields: Mapping[str, Any]) -> Any:
        value = fields.get(self.filter_field) if self.filter_field else None
        return value if isinstance(value, str | int) else None

    # ---- searching

    def _read_description(self) -> None:
        found = self._describe()
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
        except (TypeError, ValueError):  # rows of different lengths, or not numbers
            vectors = np.zeros(0, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise InputError(
                f"the encoder returned {vectors.shape if vectors.size else type(encoded).__name__} "
                f"for {many(len(texts), 'text')}", where="encoder",
                fix="return one vector for each text, all of the same length",
            )  # fmt: skip
        if not np.isfinite(vectors).all():
            raise InputError(
                "the encoder returned numbers that are not finite", where="encoder",
                fix="check the texts; return zeros for a text without content",
            )  # fmt: skip
        return vectors

    def _check_dimensions(self, vectors: Vectors) -> None:
        if self._dimensions not in {None, vectors.shape[1]}:
            raise InputError(
                f"the encoder returns vectors of {vectors.shape[1]} numbers, but collection "
                f"{self.collection!r} has vectors of {self._dimensions}",
                where=self.TYPE, fix="use the encoder with which the collection was filled",
            )  # fmt: skip

    def _groups(
        self, queries: Sequence[Query], places: npt.NDArray[np.intp]
    ) -> list[tuple[Any, list[int]]]:
        """Return pairs of filter value and positions of the queries that have it."""
        groups: dict[tuple[type, Any], list[int]] = {}
        for place in places.tolist():
            given = queries[place].fields.get(self.filter_field) if self.filter_field else None
            if given is not None and not isinstance(given, str | int):
                raise InputError(
                    f"got {given!r:.60} as filter value, expected text or a whole number",
                    where=f"query {queries[place].id!r}, field {self.filter_field!r}",
                    fix="remove the field from the query, or pass one value",
                )
            # True and 1 are different values but equal keys.
            groups.setdefault((type(given), given), []).append(place)
        return [(given, group) for (_, given), group in groups.items()]

    def _rankings(self, vectors: Vectors, k: int, value: Any) -> list[list[Row]]:
        """Return rankings of documents, each at its best rank: a collection may contain chunks."""
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
    """Return the bytes of a file, or of all files in a folder."""
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
    """Return a document id from the payload of a vector."""
    found = (payload or {}).get(field)
    if found is None:
        known = ", ".join(sorted(payload or {})) or "nothing"
        raise InputError(
            f"a hit has no document id in {field!r}; it has {known}", where=where,
            fix="name the field that contains it: id_field=...",
        )  # fmt: skip
    return str(found)


def text_of(value: Any) -> str | None:
    """Return a filter value as text, as SQL would cast it."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower()
