"""Quality of a run: bands (a rule of thumb with configurable bounds), difficulty, and slices of queries."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from rankgauge.core.arguments import of_kind
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.project_file import ProjectFile
from rankgauge.core.terms import words
from rankgauge.diagnosis.ranked_queries import RankedQuery
from rankgauge.diagnosis.terms import Texts
from rankgauge.errors import InputError, UnknownName
from rankgauge.measures.measure import Measure, parse

Level: TypeAlias = Literal["Poor", "Acceptable", "Good", "Excellent"]
LEVELS: tuple[Level, ...] = ("Poor", "Acceptable", "Good", "Excellent")

_DEFAULTS = {
    "P": (0.30, 0.50, 0.70),
    "R": (0.40, 0.60, 0.80),
    "Success": (0.60, 0.80, 0.90),
    "RR": (0.40, 0.60, 0.80),
    "nDCG": (0.40, 0.60, 0.80),
}
# Parameters of the measures of the defaults.
_WORDS = {"P": ("k", "rel"), "R": ("k", "rel"), "Success": ("k", "rel"), "RR": ("rel",), "nDCG": ("k",)}


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
        return LEVELS[sum(mean >= bound - TOLERANCE for bound in (self.acceptable, self.good, self.excellent))]


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
                path of a project file with a table ``[bands]``; or `Bands`. The names ``P``, ``R``, ``Success``,
                ``RR``, and ``nDCG`` without a cut-off replace the default bands of that name.
            k: The cut-off of the defaults.
            rel: The relevance level of the defaults.

        Raises:
            InputError: If there is no such file, or bounds are not three increasing numbers.
            UnknownName: For an unknown measure, or one for which higher is not better.

        Example:
            >>> [str(band.measure) for band in Bands.of(k=10).bands]
            ['P@10', 'R@10', 'Success@10', 'RR', 'nDCG@10']
            >>> Bands.of({"P": (0.1, 0.2, 0.3)}).bands[0].good
            0.2
        """
        if isinstance(given, Bands):
            given = {str(band.measure): (band.acceptable, band.good, band.excellent) for band in given}
        bands = [_band(*item, k, rel) for item in _DEFAULTS.items()]
        if isinstance(given, str | os.PathLike):
            file = ProjectFile.read(given).inside("bands")
        else:
            of_kind("the bands", given, Mapping | None, 'pass a mapping {"P@5": (0.3, 0.5, 0.7)}', where="bands")
            file = ProjectFile(Path("bands"), given or {})
        for name, bounds in file.value({}).items():
            with file.at(name):
                bands.append(_band(name, bounds, k, rel))
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


def _band(name: str, values: Any, k: int, rel: float) -> Band:
    parameters = {"k": k, "rel": rel}
    measure = Measure(name)(**{word: parameters[word] for word in _WORDS[name]}) if name in _WORDS else parse(name)
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
            fix=f'"{name}" = [0.3, 0.5, 0.7]',
        )
    return Band(measure, low, middle, high)


#: With fewer queries, a slice has no interval.
ENOUGH = 10
#: Properties by which queries are always sliced.
OWN_CUTS = ("words of the query", "relevant documents")
_BINS = 10
_LENGTHS = ((1, "1–3"), (4, "4–6"), (7, "7 and more"))
_RELEVANT = ((1, "1"), (2, "2–3"), (4, "4–9"), (10, "10 and more"))


@dataclass(frozen=True)
class Difficulty:
    """The distribution of values over queries.

    Attributes:
        counts: The number of queries in each tenth of the range 0 to 1, the last one closed; empty
            for a measure with other bounds.
        undefined: The number of queries without a value: they have no relevant document.
        nothing_at_k: The number of queries with a relevant document, but none in the first k.
        nothing_at_all: The number of these queries without a relevant document at any depth.
    """

    counts: tuple[int, ...]
    undefined: int
    nothing_at_k: int
    nothing_at_all: int


@dataclass(frozen=True)
class Slice:
    """A group of queries with a common property.

    Attributes:
        by: The property.
        label: The value of the property.
        queries: The number of queries with a value of the measure.
        mean: The mean over these queries.
        low: The lower bound of the 95% interval (see `Measure.mean_interval`); None with too few
            queries.
        high: The upper bound of the interval.
    """

    by: str
    label: str
    queries: int
    mean: float
    low: float | None
    high: float | None


def difficulty(ranked: Sequence[RankedQuery], values: Mapping[str, float], measure: Measure, k: int) -> Difficulty:
    """Return the distribution of values over queries."""
    known = _known(values.values())
    counts = [0] * _BINS
    if measure.declaration.bounds == (0, 1):
        for value in known:
            # The tolerance assigns 0.3 to the fourth bin even if rounding errors make it smaller.
            counts[min(_BINS - 1, math.floor(value * _BINS + 1e-9))] += 1
    missing = [query for query in ranked if query.relevant and not query.hits(k)]
    return Difficulty(
        counts=tuple(counts) if sum(counts) == len(known) else (),
        undefined=len(values) - len(known),
        nothing_at_k=len(missing),
        nothing_at_all=sum(not query.hits(len(query.docs)) for query in missing),
    )


def slices(
    ranked: Sequence[RankedQuery], values: Mapping[str, float], texts: Texts, group_by: str | None, *, measure: Measure
) -> tuple[Slice, ...]:
    """Return means by group, by query length in words, and by number of relevant documents."""
    queries = texts.collection.queries

    def field(ranked_query: RankedQuery) -> str:
        query = queries.get(ranked_query.query_id)
        value = None if query is None else query.fields.get(group_by or "")
        return "(none)" if value is None else str(value)

    def length(ranked_query: RankedQuery) -> str:
        query = queries.get(ranked_query.query_id)
        return _range(0 if query is None else len(words(query.text)), _LENGTHS)

    cuts: list[tuple[str, Callable[[RankedQuery], str], list[str]]] = []
    if group_by is not None:
        cuts.append((group_by, field, sorted(set(map(field, ranked)))))
    if queries:
        cuts.append((OWN_CUTS[0], length, [label for _, label in _LENGTHS]))
    cuts.append((OWN_CUTS[1], lambda query: _range(len(query.relevant), _RELEVANT), [label for _, label in _RELEVANT]))
    groups = (
        (by, label, _known(values[query.query_id] for query in ranked if label_of(query) == label))
        for by, label_of, labels in cuts
        for label in labels
    )
    nonempty = []
    for by, label, own in groups:
        if own:
            low, high = measure.mean_interval(np.array(own))
            bounds = (None, None) if len(own) < ENOUGH or math.isnan(low) else (low, high)
            nonempty.append(Slice(by, label, len(own), math.fsum(own) / len(own), *bounds))
    return tuple(nonempty)


def _range(number: int, ranges: Sequence[tuple[int, str]]) -> str:
    return next((label for least, label in reversed(ranges) if number >= least), "")


def _known(values: Iterable[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]
