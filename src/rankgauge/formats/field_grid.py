"""Find the fields of lines with NumPy.

The positions of separators form a grid of lines by fields. If fields are separated by more than one
blank, both ends of each field are located.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import IntArray
from rankgauge.formats.lines import AROUND

_LINE, _RETURN, _BLANK, _TAB = 10, 13, 32, 9
_KEPT = 31 << 20
_Bytes: TypeAlias = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class FieldGrid:
    """Ends and starts of fields, (lines, fields), as offsets from `AROUND` bytes before the text.

    Without starts, each field starts one byte after the end of the previous one.
    """

    closed: IntArray
    opened: IntArray | None = None

    def starts(self, field: int) -> IntArray:
        """Return the start of a field in each line."""
        if self.opened is not None:
            return self.opened[:, field]
        if field:
            return self.closed[:, field - 1] + 1
        starts = np.empty(len(self.closed), dtype=np.int64)
        starts[0] = AROUND
        np.add(self.closed[:-1, -1], 1, out=starts[1:])
        return starts

    def ends(self, field: int) -> IntArray:
        """Return the end of a field in each line."""
        return self.closed[:, field]


class FieldFinder:
    """Finder of field boundaries, with reusable memory."""

    def __init__(self) -> None:
        # Freeing one array this large raises malloc's mmap threshold, so that memory freed by later
        # pieces is reused instead of being returned to the system.
        np.empty(_KEPT, dtype=np.uint8)
        self._blank = self._flags = np.zeros(0, dtype=bool)

    def grid(self, text: _Bytes, width: int) -> FieldGrid | None:
        """Return the fields of these lines; None if a line does not have `width` fields."""
        if AROUND + len(text) > len(self._blank):
            self._blank = np.empty(AROUND + len(text), dtype=bool)
            self._flags = np.empty(len(text), dtype=bool)
        blank, flags = self._blank[: AROUND + len(text)], self._flags[: len(text)]
        blank[:AROUND] = True
        np.less_equal(text, _BLANK, out=blank[AROUND:])
        np.logical_and(blank[AROUND:], blank[AROUND - 1 : -1], out=flags)
        if flags.any():
            return _ragged(text, blank, width)
        blank[:AROUND] = False
        ends = np.flatnonzero(blank)
        if len(ends) % width:
            return None
        grid = ends.reshape(-1, width)
        np.equal(text, _LINE, out=flags)
        lines = np.count_nonzero(flags)
        if lines != len(grid) or not flags[grid[:, -1] - AROUND].all():
            return None
        np.equal(text, _BLANK, out=flags)
        others = len(ends) - lines - np.count_nonzero(flags)
        if others and others != np.count_nonzero(text == _TAB):
            return None
        return FieldGrid(grid)


def _ragged(text: _Bytes, blank: npt.NDArray[np.bool_], width: int) -> FieldGrid | None:
    """Return the fields of lines with repeated, leading, or trailing blanks."""
    here, before = blank[AROUND:], blank[AROUND - 1 : -1]
    starts = np.flatnonzero(~here & before)
    if not len(starts) or len(starts) % width:
        return None
    ends = np.flatnonzero(here & ~before)
    feeds = np.flatnonzero(text == _LINE)
    returns = np.flatnonzero(text == _RETURN)
    # A lone carriage return also ends a line.
    if len(returns) and not (text[returns + 1] == _LINE).all():
        return None
    blanks = np.count_nonzero(text == _BLANK) + np.count_nonzero(text == _TAB)
    if blanks + len(feeds) + len(returns) != np.count_nonzero(here):
        return None
    opened, closed = starts.reshape(-1, width), ends.reshape(-1, width)
    if len(feeds) != len(opened):
        return None
    if not ((closed[:, -1] <= feeds).all() and (feeds[:-1] < opened[1:, 0]).all()):
        return None
    return FieldGrid(closed + AROUND, opened + AROUND)


def field_grid(text: _Bytes, width: int) -> tuple[IntArray, IntArray] | None:
    """Return starts and ends of fields, (lines, fields); None if lines differ in width."""
    grid = FieldFinder().grid(text, width)
    if grid is None:
        return None
    starts = np.stack([grid.starts(field) for field in range(width)], axis=1)
    return starts - AROUND, grid.closed - AROUND
