"""Poor, Acceptable, Good, Excellent: a rule of thumb, each bound of which can be chosen."""

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

__all__ = ["LEVELS", "Band", "Bands", "Level"]

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
_LEVELLED = {"P", "R", "Success", "RR"}


@dataclass(frozen=True)
class Band:
    """From which mean on a measure is Acceptable, Good and Excellent; below the first it is Poor.

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
        """The band that a mean lies in, lower bounds inclusive; None for NaN."""
        if math.isnan(mean):
            return None
        bounds = (self.acceptable, self.good, self.excellent)
        return LEVELS[sum(mean >= bound - TOLERANCE for bound in bounds)]


@dataclass(frozen=True)
class Bands:
    """The bands of several measures. A rule of thumb: what is good enough depends on the use.

    Attributes:
        bands: One for each measure.
    """

    bands: tuple[Band, ...]

    @classmethod
    def of(cls, given: Any = None, *, k: int = 5, rel: float = 1) -> Bands:
        """The default bands at a cut-off, with those given in their place or beside them.

        The defaults are P@5 .30/.50/.70, R@5 .40/.60/.80, Success@5 (hit rate) .60/.80/.90, RR
        .40/.60/.80 and nDCG@5 .40/.60/.80; at another cut-off they keep these bounds.

        Args:
            given: A mapping of measure to three bounds, such as ``{"P@5": (0.2, 0.4, 0.6)}``; the
                path of a TOML file with a table ``[bands]`` (in pyproject.toml:
                ``[tool.rankgauge.bands]``); or bands. ``P``, ``R``, ``Success``, ``RR`` and
                ``nDCG`` without a cut-off stand for the defaults of that name.
            k: The cut-off of the defaults.
            rel: The relevance level of the defaults.

        Raises:
            InputError: If there is no such file or table, or bounds are not three rising numbers.
            UnknownName: For a measure nobody knows, or one that is not better the higher it is.

        Example:
            >>> [str(band.measure) for band in Bands.of(k=10).bands]
            ['P@10', 'R@10', 'Success@10', 'RR', 'nDCG@10']
            >>> Bands.of({"P": (0.1, 0.2, 0.3)}).bands[0].good
            0.2
        """
        bounds: dict[Measure, tuple[float, float, float]] = {
            _at(name, k, rel): found for name, found in _DEFAULTS.items()
        }
        for name, values in _items(given):
            bounds[_named(name, k, rel)] = _bounds(name, values)
        return cls(tuple(Band(measure, *found) for measure, found in bounds.items()))

    def __iter__(self) -> Iterator[Band]:
        return iter(self.bands)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that have a band."""
        return tuple(band.measure for band in self.bands)


def _at(name: str, k: int, rel: float) -> Measure:
    words: dict[str, Any] = {"k": k} if name in _CUT else {}
    return Measure(name)(**words, **({"rel": rel} if name in _LEVELLED else {}))


def _named(name: str, k: int, rel: float) -> Measure:
    if name in _DEFAULTS:
        return _at(name, k, rel)
    measure = parse(name)
    if measure.declaration.better != "higher":
        raise UnknownName(
            f"{measure} is not better the higher it is: it has no bands",
            where="bands",
            fix="leave it out",
        )
    return measure


def _items(given: Any) -> list[tuple[str, Any]]:
    if given is None:
        return []
    if isinstance(given, Bands):
        return [(str(b.measure), (b.acceptable, b.good, b.excellent)) for b in given]
    if isinstance(given, str | os.PathLike):
        return list(_read(Path(given)).items())
    if not isinstance(given, Mapping):
        raise InputError(
            f"got {type(given).__name__} for the bands", where="bands",
            fix='give a mapping {"P@5": (0.3, 0.5, 0.7)} or the path of a TOML file',
        )  # fmt: skip
    return [(str(name), values) for name, values in given.items()]


def _read(path: Path) -> Mapping[str, Any]:
    where = source_name(path)
    try:
        data: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"cannot read it: {error.strerror or error}", where=where, fix="check the path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"not valid TOML: {error}",
            where=where,
            fix='write [bands] and "P@5" = [0.3, 0.5, 0.7]',
        ) from None
    found = data.get("bands")
    if found is None:
        for key in ("tool", "rankgauge", "bands"):
            data = data.get(key) if isinstance(data, Mapping) else None
        found = data
    if not isinstance(found, Mapping):
        raise InputError(
            "there is no table of bands", where=where,
            fix='write [bands] (in pyproject.toml: [tool.rankgauge.bands]) and "P@5" = '
            "[0.3, 0.5, 0.7]",
        )  # fmt: skip
    return found


def _bounds(name: str, values: Any) -> tuple[float, float, float]:
    try:
        low, middle, high = (float(value) for value in values)
    except (TypeError, ValueError):
        low = middle = high = math.nan
    # A comparison with NaN is never true.
    if not -math.inf < low < middle < high < math.inf:
        raise InputError(
            f"got {values!r:.60}, wanted three rising numbers", where=f"bands of {name}",
            fix=f'"{name}" = [0.3, 0.5, 0.7]',
        )  # fmt: skip
    return low, middle, high
