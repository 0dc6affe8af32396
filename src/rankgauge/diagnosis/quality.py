"""Quality bands Poor, Acceptable, Good, and Excellent: a rule of thumb with configurable bounds."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.errors import InputError, UnknownName
from rankgauge.formats.lines import source_name
from rankgauge.measures.measure import Measure, parse

__all__ = ["LEVELS", "Band", "Bands", "Level", "Quality", "qualities"]

Level: TypeAlias = Literal["Poor", "Acceptable", "Good", "Excellent"]
LEVELS: tuple[Level, ...] = ("Poor", "Acceptable", "Good", "Excellent")

_DEFAULTS = {
    "P": (0.30, 0.50, 0.70),
    "R": (0.40, 0.60, 0.80),
    "Success": (0.60, 0.80, 0.90),
    "RR": (0.40, 0.60, 0.80),
    "nDCG": (0.40, 0.60, 0.80),
}
_CUT = {"P", "R", "Success", "nDCG"}
_LEVELED = {"P", "R", "Success", "RR"}
_TABLE = '[bands] and "P@5" = [0.3, 0.5, 0.7]'


@dataclass(frozen=True)
class Band:
    """Lower bounds of the bands Acceptable, Good, and Excellent of a measure; lower means are Poor.

    Attributes:
        measure: The measure.
        acceptable: The lowest mean that is Acceptable.
        good: The lowest mean that is Good.
        excellent: The lowest mean that is Excellent.

    Example:
        >>> band = Band(parse("P@5"), 0.3, 0.5, 0.7)
        >>> band.level(0.29), band.level(0.3), band.level(0.7)
        ('Poor', 'Acceptable', 'Excellent')
    """

    measure: Measure
    acceptable: float
    good: float
    excellent: float

    def level(self, mean: float) -> Level | None:
        """Return the band of a mean, lower bounds inclusive; None for NaN."""
        if math.isnan(mean):
            return None
        bounds = (self.acceptable, self.good, self.excellent)
        return LEVELS[sum(mean >= bound - TOLERANCE for bound in bounds)]


@dataclass(frozen=True)
class Bands:
    """The bands of several measures, as a rule of thumb: required quality depends on the use.

    Attributes:
        bands: The band of each measure.
    """

    bands: tuple[Band, ...]

    @classmethod
    def of(cls, given: Any = None, *, k: int = 5, rel: float = 1) -> Bands:
        """Return the default bands at a cut-off, with replacements and additions.

        The defaults are 0.3, 0.5, and 0.7 for P@5; 0.6, 0.8, and 0.9 for Success@5 (hit rate); and
        0.4, 0.6, and 0.8 for R@5, RR, and nDCG@5; with the same bounds at other cut-offs.

        Args:
            given: A mapping of measure to three bounds, such as ``{"P@5": (0.2, 0.4, 0.6)}``; the
                path of a TOML file with a table ``[bands]`` (in pyproject.toml:
                ``[tool.rankgauge.bands]``); or `Bands`. The names ``P``, ``R``, ``Success``,
                ``RR``, and ``nDCG`` without a cut-off replace the default bands of that name.
            k: The cut-off of the defaults.
            rel: The relevance level of the defaults.

        Raises:
            InputError: If there is no such file or table, or bounds are not three increasing
                numbers.
            UnknownName: For an unknown measure, or one for which higher is not better.

        Example:
            >>> [str(band.measure) for band in Bands.of(k=10).bands]
            ['P@10', 'R@10', 'Success@10', 'RR', 'nDCG@10']
            >>> Bands.of({"P": (0.1, 0.2, 0.3)}).bands[0].good
            0.2
        """
        bands = (_band(*item, k, rel) for item in (*_DEFAULTS.items(), *_items(given)))
        return cls(tuple({band.measure: band for band in bands}.values()))

    def __iter__(self) -> Iterator[Band]:
        return iter(self.bands)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Measures with a band."""
        return tuple(band.measure for band in self.bands)


@dataclass(frozen=True)
class Quality:
    """A mean, its band, and its attainable value.

    Attributes:
        measure: The measure.
        mean: The mean.
        level: The band of the mean; None if undefined.
        attainable: The mean of the ideal rankings.
        highest: The band of the attainable mean.
    """

    measure: Measure
    mean: float
    level: Level | None
    attainable: float
    highest: Level | None


def qualities(means: Mapping[str, float], attainable: Mapping[str, float], bands: Bands) -> tuple[Quality, ...]:
    """Return each mean with its band and the highest attainable band."""
    rows = [(band, means[str(band.measure)], attainable[str(band.measure)]) for band in bands]
    return tuple(Quality(band.measure, mean, band.level(mean), most, band.level(most)) for band, mean, most in rows)


def _measure(name: str, k: int, rel: float) -> Measure:
    if name not in _DEFAULTS:
        return parse(name)
    words: dict[str, Any] = {"k": k} if name in _CUT else {}
    return Measure(name)(**words, **({"rel": rel} if name in _LEVELED else {}))


def _items(given: Any) -> list[tuple[str, Any]]:
    if given is None:
        return []
    if isinstance(given, Bands):
        return [(str(b.measure), (b.acceptable, b.good, b.excellent)) for b in given]
    if isinstance(given, str | os.PathLike):
        given = _read(Path(given))
    if not isinstance(given, Mapping):
        raise InputError(
            f"got {type(given).__name__} for the bands",
            where="bands",
            fix='pass a mapping {"P@5": (0.3, 0.5, 0.7)} or the path of a TOML file',
        )
    return [(str(name), values) for name, values in given.items()]


def _read(path: Path) -> Mapping[str, Any]:
    """Return the table ``[bands]`` or ``[tool.rankgauge.bands]`` of a TOML file."""
    where = source_name(path)
    try:
        data: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror or error}", where=where, fix="check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not valid TOML: {error}", where=where, fix=f"write {_TABLE}") from None
    found = data.get("bands")
    if found is None:
        for key in ("tool", "rankgauge", "bands"):
            data = data.get(key) if isinstance(data, Mapping) else None
        found = data
    if not isinstance(found, Mapping):
        raise InputError(
            "there is no table of bands", where=where, fix=f"write {_TABLE}; in pyproject.toml: [tool.rankgauge.bands]"
        )
    return found


def _band(name: str, values: Any, k: int, rel: float) -> Band:
    measure = _measure(name, k, rel)
    if measure.declaration.better != "higher":
        raise UnknownName(f"{measure} is not better when higher: it has no bands", where="bands", fix="remove it")
    try:
        low, middle, high = (float(value) for value in values)
    except (TypeError, ValueError):
        low = middle = high = math.nan
    # Comparisons with NaN are false.
    if not -math.inf < low < middle < high < math.inf:
        raise InputError(
            f"got {values!r:.60}, expected three increasing numbers",
            where=f"bands of {name}",
            fix=f'"{name}" = [0.3, 0.5, 0.7]',
        )
    return Band(measure, low, middle, high)
