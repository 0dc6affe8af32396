"""Functions and measures of ir_measures, based on ``evaluate``.

The measures of ir_measures are attributes: ``from rankgauge.tutorials.ir_measures import nDCG``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rankgauge.core.grammar import plain_key
from rankgauge.core.libraries import library
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.measures.declaration import NAMES
from rankgauge.measures.measure import Measure, parse

# The measures of ir_measures, except NumQ, the number of queries, which does not measure a run.
_MEASURES = (
    "AP",
    "AP_IA",
    "Accuracy",
    "BPM",
    "BPref",
    "Bpref",
    "Compat",
    "ERR",
    "ERR_IA",
    "INSQ",
    "INST",
    "IPrec",
    "Judged",
    "MAP",
    "MAP_IA",
    "MRR",
    "NDCG",
    "NERR10",
    "NERR11",
    "NERR8",
    "NERR9",
    "NRBP",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "P_IA",
    "Precision",
    "R",
    "RBP",
    "RPrec",
    "RR",
    "Recall",
    "Rprec",
    "SDCG",
    "SetAP",
    "SetF",
    "SetP",
    "SetR",
    "SetRelP",
    "StRecall",
    "Success",
    "alpha_DCG",
    "alpha_nDCG",
    "infAP",
    "nDCG",
    "nERR_IA",
    "nNRBP",
)

__all__ = [  # noqa: PLE0604 - all are text
    "CalcResults",
    "Metric",
    "calc",
    "calc_aggregate",
    "define",
    "iter_calc",
    "parse_measure",
    *_MEASURES,
]


class Metric(NamedTuple):
    """Value of one measure for one query."""

    query_id: str
    measure: Measure
    value: float


class CalcResults(NamedTuple):
    """Mean of one measure, or means by measure, and the values of all queries."""

    aggregated: Any
    per_query: list[Metric]


class IRMeasure(Measure):
    """A measure with the methods of ir_measures; equal to the measure of the same name.

    Example:
        >>> import rankgauge
        >>> from rankgauge.tutorials.ir_measures import MRR
        >>> qrels, run = {"q1": {"d1"}, "q2": {"d1"}}, {"q1": ["d1"], "q2": ["d2", "d1"]}
        >>> MRR.calc_aggregate(qrels, run), [metric.value for metric in MRR.iter_calc(qrels, run)]
        (0.75, [1.0, 0.5])
        >>> MRR @ 10 == rankgauge.RR @ 10
        True
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measure):
            return NotImplemented
        return (self.name, self.params) == (other.name, other.params)

    def __hash__(self) -> int:
        return hash(Measure(self.name, self.params))

    def __call__(self, **params: Any) -> IRMeasure:
        """Return the measure with other parameters: ``RR(rel=2)``."""
        return _with_methods(super().__call__(**params))

    def iter_calc(self, qrels: Any, run: Any) -> Iterator[Metric]:
        """Yield the value of each judged query."""
        return iter_calc([self], qrels, run)

    def calc_aggregate(self, qrels: Any, run: Any) -> float:
        """Return the mean over all judged queries."""
        return calc_aggregate([parse(self)], qrels, run)[self]

    def calc(self, qrels: Any, run: Any) -> CalcResults:
        """Return the mean and the values of all judged queries."""
        means, values = calc([parse(self)], qrels, run)
        return CalcResults(means[self], values)


def iter_calc(measures: Sequence[str | Measure], qrels: Any, run: Any) -> Iterator[Metric]:
    """Yield the value of each judged query by each measure; an undefined value is 0.0.

    Args:
        measures: Measures or their names; a curve (``IPrec``) is replaced by all of its points.
        qrels: Judgments in any form that :meth:`Qrels.of` accepts.
        run: A run in any form that :meth:`Run.of` accepts.

    Example:
        >>> list(iter_calc(["P@1"], {"q1": {"d1"}}, {"q1": ["d1"]}))
        [Metric(query_id='q1', measure=P@1, value=1.0)]
    """
    yield from calc(measures, qrels, run).per_query


def calc_aggregate(measures: Sequence[str | Measure], qrels: Any, run: Any) -> dict[Measure, float]:
    """Return the mean of each measure over all judged queries.

    Args:
        measures: Measures or their names.
        qrels: Judgments in any form that :meth:`Qrels.of` accepts.
        run: A run in any form that :meth:`Run.of` accepts.

    Example:
        >>> calc_aggregate(["RR"], {"q1": {"d1"}, "q2": {"d1"}}, {"q1": ["d1"]})
        {RR: 0.5}
    """
    return calc(measures, qrels, run).aggregated


def calc(measures: Sequence[str | Measure], qrels: Any, run: Any) -> CalcResults:
    """Return the results of both :func:`calc_aggregate` and :func:`iter_calc`, as a list.

    Example:
        >>> calc(["RR"], {"q1": {"d1"}}, {"q1": ["d1"]}).aggregated
        {RR: 1.0}
    """
    evaluation = evaluate(qrels, run, measures)
    values = [
        Metric(query, measure, 0.0 if math.isnan(value) else value)
        for column, measure in enumerate(evaluation.measures)
        for query, value in zip(
            evaluation.query_ids, measure.counted(evaluation.per_query[:, column]).tolist(), strict=True
        )
    ]
    return CalcResults({measure: evaluation.mean()[str(measure)] for measure in evaluation.measures}, values)


def define(measure: str | Measure) -> Any:
    """Return a measure of ir_measures that has our values, such as for ``pyterrier.Experiment``.

    Args:
        measure: A measure whose mean is arithmetic and includes undefined values as 0.

    Raises:
        InputError: For other measures, since ir_measures would compute another mean.
        MissingExtra: If ir_measures is not installed.

    Example:
        >>> import pytest
        >>> ir_measures = pytest.importorskip("ir_measures")
        >>> metric = define("nDCG@0.5R")
        >>> metric, ir_measures.calc_aggregate([metric], {"q1": {"d1": 1}}, {"q1": {"d1": 2.0}})
        (nDCG@0.5R, {nDCG@0.5R: 1.0})
    """
    parsed = parse(measure)
    declared = parsed.declaration
    if (declared.mean, declared.undefined) != ("arithmetic", "zero"):
        raise InputError(f"{parsed} has another mean than ir_measures computes", fix="use evaluate() or compare()")

    def values(qrels: Any, run: Any) -> Iterator[tuple[str, float]]:
        for metric in iter_calc([parsed], qrels, run):
            yield metric.query_id, metric.value

    return library("ir_measures", extra="pyterrier", of="define").define(values, str(parsed), support_cutoff=False)


def parse_measure(name: str) -> IRMeasure:
    """Parse the name of a measure, such as ``P(rel=2)@10``; see :func:`parse`.

    Example:
        >>> parse_measure("MRR@10").calc_aggregate({"q1": {"d1"}}, {"q1": ["d2", "d1"]})
        0.5
    """
    return _with_methods(parse(name, dialect="ir_measures"))


def _with_methods(measure: Measure) -> IRMeasure:
    return IRMeasure(measure.name, measure.params)


def __getattr__(name: str) -> IRMeasure:
    if name not in _MEASURES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    key = plain_key(name)
    if key not in NAMES:
        return parse_measure(name)
    # A measure without its cut-off, such as P, cannot be parsed yet.
    declared, params = NAMES[key]
    return IRMeasure(declared)(**params)
