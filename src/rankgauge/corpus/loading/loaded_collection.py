"""What every source of a collection is turned into, and rows of other libraries as texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rankgauge.data.qrels import Qrels
from rankgauge.errors import FormatError
from rankgauge.formats.texts import Faults, Placed, TextRow, add_fault, row_of


@dataclass(frozen=True)
class Loaded:
    """A collection as it was read."""

    documents: Mapping[str, TextRow] = field(default_factory=dict)  # document id to its text
    queries: Mapping[str, TextRow] = field(default_factory=dict)  # query id to its text
    qrels: Qrels | None = None  # the judgments, if there are any
    name: str = "collection"  # its name
    notes: tuple[str, ...] = ()  # notes of the reader
    # Whether the judgments was with the queries: they are for these queries alone.
    beside: bool = False


class RowReader:
    """Reads texts from what hands out rows again and again.

    Args:
        rows: Gives all rows: mappings with an id and a text.
        name: Its name for messages.
        row: Gives the row at a place, if that is quick.
        size: Bytes of all texts, about.
    """

    def __init__(
        self,
        rows: Callable[[], Iterable[Mapping[str, Any]]],
        name: str,
        *,
        row: Callable[[int], Mapping[str, Any]] | None = None,
        size: int | None = None,
    ) -> None:
        self.name, self.size = name, size
        self.seekable = row is not None
        self._rows, self._row = rows, row

    def rows(self, faults: Faults | None = None) -> Iterator[Placed]:
        """Every text, in order."""
        for place, row in enumerate(self._rows()):
            try:
                yield Placed(place + 1, place, self._text(row, place))
            except FormatError as error:
                add_fault(error, faults)

    def at(self, offset: int) -> TextRow | None:
        """The text at this place, from 0."""
        return None if self._row is None else self._text(self._row(offset), offset)

    def stamp(self) -> object:
        """Always the same: rows are assumed not to change."""
        return None

    def _text(self, row: Mapping[str, Any], place: int) -> TextRow:
        fields = {key: value for key, value in row.items() if value is not None or key == "text"}
        return row_of(fields, self.name, place + 1)
