"""Baselines of a gate: values and top documents per query, in a file that can be reviewed."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from rankgauge.comparison.differences import select
from rankgauge.core.arguments import is_number
from rankgauge.core.files import read_text, write_atomically
from rankgauge.core.findings import Finding, explaining
from rankgauge.core.text import Ratio, inflect, keep, many, some
from rankgauge.data.join import ranked
from rankgauge.data.judged_run import Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import FormatError, InputError
from rankgauge.evaluation.evaluation import evaluate, evaluate_blocks
from rankgauge.evaluation.result import Evaluation, of_answers
from rankgauge.formats.json_files import json_document
from rankgauge.gates.rules import MAX_FAILED, GateRules
from rankgauge.measures.measure import Measure, parse

_SCHEMA = "rankgauge/baseline/"
_VERSION = 2
# 95% of a normal distribution are within this many standard deviations.
_BAND = 1.959963984540054
_TOP = 10  # documents of each ranking that are stored for reports
_SHORT = 16  # hexadecimal digits: 64 bits
_MARKS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
_RENEW = "write it again: rankgauge gate QRELS RUN --update-baseline"
# Keys at the root of the file; within it, a query may have the same name.
_KEYS = ("schema", "rankgauge", "run", "depth", "measures", "fingerprints", "noise", "queries")


class FirstDocuments(NamedTuple):
    """First documents of each query of a run or part of a run."""

    documents: Mapping[str, tuple[str, ...]]
    depth: int  # length of the longest ranking

    @classmethod
    def of(cls, run: Run) -> FirstDocuments:
        """Return the first `top` documents of each query."""
        best = ranked(run, depth=_TOP)
        docs, parts = best.table.docs.shown(), pairwise(best.table.offsets.tolist())
        documents = {q: tuple(docs[a:b]) for q, (a, b) in zip(best.query_ids, parts, strict=True)}
        return cls(documents, int(np.diff(run.table.offsets).max(initial=0)))


@dataclass(frozen=True)
class Noise:
    """Differences between repeated runs of the same system.

    Attributes:
        runs: Number of runs.
        bands: Noise band by measure: 95% of pairs of runs differ by less, if many queries vary
            independently.
        jitter: Range (largest minus smallest value) by query and measure.
    """

    runs: int
    bands: Mapping[str, float]
    jitter: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, evaluations: Sequence[Evaluation], measures: Sequence[Measure], query_ids: Collection[str]) -> Noise:
        """Return the noise of these measures in repeated runs from their evaluations on these queries.

        If queries vary independently with standard deviation s_q over the runs, the difference of
        two means has variance 2 sum(s_q^2) / Q^2, and the band is 1.96 standard deviations. If the
        observed means differ by more (queries vary together), the band is the 95% quantile of their
        differences, which is too small for few runs or if only a few queries vary.

        Raises:
            InputError: If there are fewer than two runs, or a run has other queries or lacks a measure.
        """
        if len(evaluations) < 2:
            raise InputError(
                f"got {many(len(evaluations), 'repeated run')}, expected two or more",
                where="noise",
                fix="run the system of the baseline again: --noise first.run --noise second.run",
            )
        if any(evaluation.query_ids != tuple(query_ids) for evaluation in evaluations):
            raise InputError(
                "a repeated run was evaluated on other queries",
                where="noise",
                fix="evaluate them with the same judgments",
            )
        values = np.stack([select(evaluation, measures).per_query for evaluation in evaluations], axis=1)
        bands = {}
        jitter: dict[str, dict[str, float]] = {query: {} for query in query_ids}
        for column, measure in enumerate(measures):
            # Values that are missing in some run and excluded from means have no range.
            counted = measure.counted(values[:, :, column])
            known = ~np.isnan(counted).any(axis=1)
            bands[str(measure)] = _band(counted[known].T)
            spread = np.where(known, counted.max(axis=1) - counted.min(axis=1), 0.0)
            for query, width in zip(jitter, spread.tolist(), strict=True):
                jitter[query][str(measure)] = width
        return cls(runs=len(evaluations), bands=bands, jitter=jitter)


def _band(values: Values) -> float:
    """Return the noise band of one measure; `values` has shape (runs, queries)."""
    queries = values.shape[1]
    if not (values != values[0]).any():
        # Exactly 0: the mean of equal numbers may differ from them in the last bit.
        return 0.0
    independent = _BAND * math.sqrt(2 * math.fsum(values.var(axis=0, ddof=1).tolist())) / queries
    means = [math.fsum(row) / queries for row in values.tolist()]
    seen = [abs(mean - other) for mean, other in combinations(means, 2)]
    return max(independent, float(np.quantile(seen, 0.95)))


@dataclass(frozen=True)
class BaselineQuery:
    """A query of a baseline.

    Attributes:
        values: Value by measure; NaN if undefined.
        top: First documents, best first; None if the ranking is unknown.
        judgments: Fingerprint of the judgments; None if unknown.
    """

    values: Mapping[str, float]
    top: tuple[str, ...] | None
    judgments: str | None


@dataclass(frozen=True, repr=False)
class Baseline:
    """Values of a run, with fingerprints that show whether another run is comparable.

    Created by :meth:`from_run`, :meth:`from_evaluation`, or :meth:`read`; stored as a small file
    next to the code with one line per query, sorted, so that changes can be reviewed.

    Attributes:
        run_name: Name of the run.
        version: Version of rankgauge that created the baseline.
        depth: Length of the longest ranking; None if the rankings are unknown.
        measures: Fingerprint of the definition by measure.
        queries: Values, first documents, and fingerprint of the judgments by query, sorted.
        noise: Differences between repeated runs of the same system; None if not measured.
        settings: Versions of prompt, model, retrieval, and judge for generated answers; empty for
            runs.

    Example:
        >>> baseline = Baseline.from_run({"q1": {"d1"}, "q2": {"d2"}}, {"q1": ["d1"], "q2": ["x"]})
        >>> baseline, baseline.queries["q1"].top
        (<Baseline 'run': 2 queries by nDCG@10>, ('d1',))
    """

    run_name: str
    version: str
    depth: int | None
    measures: Mapping[str, str]
    queries: Mapping[str, BaselineQuery]
    noise: Noise | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_run(cls, qrels: Any, run: Any, rules: Any = None, *, noise: Iterable[Any] = ()) -> Baseline:
        """Create the baseline of a run.

        Args:
            qrels: The judgments: anything that :meth:`Qrels.of` accepts.
            run: The run: anything that :meth:`Run.of` accepts.
            rules: Rules that name the measures: anything that :meth:`GateRules.of` accepts.
            noise: Two or more repeated runs of the same system, to measure random differences.

        Raises:
            InputError: If too many queries have no ranking, a fault of the input invalidates the
                values, or an input is invalid.
        """
        wanted = GateRules.of(rules)
        truth = Qrels.of(qrels)
        measures = [gated.measure for gated in wanted.measures]
        evaluation, firsts = evaluate_blocks(truth, run, measures, FirstDocuments.of)
        repeats = [evaluate(truth, repeat, measures) for repeat in noise]
        return _finished(cls.of_values(evaluation, truth, firsts), evaluation, wanted.max_failed, repeats=repeats)

    @classmethod
    def from_evaluation(
        cls, evaluation: Evaluation, *, noise: Iterable[Evaluation] = (), max_failed: float = MAX_FAILED
    ) -> Baseline:
        """Create a baseline from values only, without judgments and rankings.

        Args:
            evaluation: Values of any measures.
            noise: Evaluations of two or more repeated runs of the same system on the same queries.
            max_failed: Largest share of queries without a ranking, from 0 to 1.

        Raises:
            InputError: As for :meth:`from_run`, or if the means are weighted.

        Example:
            >>> evaluation = evaluate({"q1": {"d1"}, "q2": {"d2"}}, {"q1": ["d1"], "q2": ["x"]}, "RR")
            >>> Baseline.from_evaluation(evaluation).mean("RR")
            0.5
        """
        return _finished(cls.of_values(evaluation), evaluation, max_failed, repeats=list(noise))

    @classmethod
    def of_values(
        cls, evaluation: Evaluation, truth: Qrels | None = None, firsts: Sequence[FirstDocuments] = ()
    ) -> Baseline:
        """Create a baseline without checking the run."""
        plain = evaluation.policies.undefined == "zero" and evaluation.left_out is None
        if evaluation.weights is not None or not plain:
            raise InputError(
                "the means of this evaluation weight queries differently",
                where="gate",
                fix="evaluate without weights, undefined='skip', or a profile",
            )
        names = [str(measure) for measure in evaluation.measures]
        documents = {query: top for part in firsts for query, top in part.documents.items()}
        prints = {} if truth is None else _judgment_prints(truth)
        rows = zip(evaluation.query_ids, evaluation.per_query.tolist(), strict=True)
        queries = {
            query: BaselineQuery(
                values=dict(zip(names, values, strict=True)),
                top=documents.get(query, ()) if firsts else None,
                judgments=prints.get(query),
            )
            for query, values in rows
        }
        return cls(
            run_name=evaluation.run_name,
            version=metadata.version("rankgauge"),
            depth=max((part.depth for part in firsts), default=None),
            measures={str(m): _definition(m, evaluation) for m in evaluation.measures},
            queries=dict(sorted(queries.items())),
            settings=dict(evaluation.settings) if of_answers(evaluation) else {},
        )

    @property
    def unit(self) -> Literal["query", "question"]:
        """Unit of the values: ``question`` for generated answers, otherwise ``query``."""
        return "question" if self.settings else "query"

    def empty(self) -> list[str]:
        """Return the queries known to have no ranking."""
        return [query for query, seen in self.queries.items() if seen.top == ()]

    def failure(self, evaluation: Evaluation, max_failed: float) -> str:
        """Return a message if more queries than allowed have no ranking, otherwise ""."""
        empty, queries = self.empty(), len(self.queries)
        number = len(empty)
        if self.depth is None:
            number = evaluation.counts.get("missing_from_run", 0)
        if number <= max_failed * queries:
            return ""
        shown = f"{Ratio(number / queries):.1%}" + (f": {some(empty)}" if empty else "")
        return (
            f"{number} of {many(queries, 'query')} {inflect(number, 'has', 'have')} no ranking "
            f"({shown}), more than max_failed = {max_failed:g} allows"
        )

    def mean(self, measure: str | Measure, queries: Iterable[str] | None = None) -> float:
        """Return the mean of a measure over these queries (default: all).

        Raises:
            InputError: If the baseline does not have the measure or a query.
        """
        wanted = parse(measure)
        chosen = list(self.queries if queries is None else queries)
        strange = [query for query in chosen if query not in self.queries]
        if str(wanted) not in self.measures or strange:
            what = f"query {strange[0]!r}" if strange else str(wanted)
            raise InputError(f"the baseline has no {what}", fix=f"it has {', '.join(self.measures)}")
        return wanted.mean([self.queries[query].values[str(wanted)] for query in chosen])

    def known(self, measure: Measure) -> list[str]:
        """Return the queries with a value of a measure."""
        return [
            query for query, kept in self.queries.items() if not math.isnan(kept.values.get(str(measure), math.nan))
        ]

    def to_json(self) -> str:
        """Return the content of the file: JSON with one line per query, always the same bytes."""
        lines, noise = [], self.noise
        for query, seen in self.queries.items():
            line: dict[str, Any] = {
                "values": {name: None if math.isnan(v) else v for name, v in seen.values.items()},
                "top": None if seen.top is None else list(seen.top),
                "judgments": seen.judgments,
            }
            if noise is not None:
                line["jitter"] = dict(noise.jitter[query])
            lines.append(f"{_json(query)}: {_json(line)}")
        # Only for answers, so that files of runs do not change.
        settings = {"settings": dict(self.settings)} if self.settings else {}
        heads = settings | {
            "schema": f"{_SCHEMA}{_VERSION}",
            "rankgauge": self.version,
            "run": self.run_name,
            "depth": self.depth,
            "measures": dict(self.measures),
            "noise": None if noise is None else {"runs": noise.runs, "bands": dict(noise.bands)},
        }
        prints = {
            "queries": _sha256(_json(list(self.queries))),
            "judgments": _sha256(_json([seen.judgments for seen in self.queries.values()])),
            "file": _sha256("\n".join([_json(heads), *lines])),
        }
        heads |= {"fingerprints": prints}
        top = "".join(f"{_json(key)}: {_json(heads[key])},\n" for key in (*_KEYS[:-1], *settings))
        return "{\n" + top + '"queries": {\n' + ",\n".join(lines) + "\n}\n}\n"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the baseline to a file, atomically.

        Raises:
            InputError: If the file cannot be written.
        """
        with write_atomically(path) as stream:
            stream.write(self.to_json().encode())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Baseline:
        """Read a baseline from a file.

        Raises:
            FormatError: If the file is damaged, was edited manually, or contains merge conflict
                markers.
            InputError: If the file does not exist, or a newer version of rankgauge wrote it.
        """
        name = str(path)
        text = read_text(
            path,
            missing="there is no baseline yet",
            fix="run once with --update-baseline on the current version, check the file, and commit it",
        )
        data = _parsed(text, name)
        try:
            baseline = _built(data)
            whole = json.loads(baseline.to_json()) == data
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else error
            raise FormatError(f"not a baseline: {why}", path=name, fix=_RENEW) from None
        if not whole:
            raise FormatError(
                "the checksum does not match: the file was edited by hand or merged", path=name, fix=_RENEW
            )
        return baseline

    def __repr__(self) -> str:
        return f"<Baseline {self.run_name!r}: {many(len(self.queries), 'query')} by {', '.join(self.measures)}>"


def _finished(
    baseline: Baseline, evaluation: Evaluation, max_failed: float, *, repeats: Sequence[Evaluation]
) -> Baseline:
    """Return a baseline with its noise, or raise an error for an unsuitable run."""
    failure = baseline.failure(evaluation, max_failed)
    if failure:
        raise InputError(
            f"{failure}: no baseline",
            where=f"run {baseline.run_name!r}",
            fix="fix the run, or raise max_failed in the rules",
        )
    for fault in input_faults(evaluation):
        raise InputError(
            f"{fault.message} ({fault.code}): no baseline", where=f"run {baseline.run_name!r}", fix=fault.fix
        )
    if not repeats:
        return baseline
    return replace(baseline, noise=Noise.of(repeats, evaluation.measures, evaluation.query_ids))


def is_baseline(path: Path) -> bool:
    """Return whether a file is a baseline, perhaps a damaged one."""
    with path.open("rb") as stream:
        return f'"{_SCHEMA}'.encode() in stream.read(1000)


def input_faults(evaluation: Evaluation) -> list[Finding]:
    """Return the findings that invalidate a run, including too many empty rankings."""
    return [finding for finding in explaining(evaluation.findings) if finding.code != "P104"]


def _parsed(text: str, name: str) -> dict[str, Any]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(_MARKS):
            raise FormatError(
                "the file has merge conflict markers",
                path=name,
                line=number,
                text=line[:60],
                fix=f"after the merge {_RENEW}",
            )
    try:
        data = json_document([(1, text.encode())], name, "a baseline")
    except FormatError as error:
        raise FormatError(f"not a baseline: {error.what}", path=name, line=error.line, fix=_RENEW) from None
    schema = data.get("schema") if isinstance(data, dict) else None
    written = str(schema).removeprefix(_SCHEMA)
    if not str(schema).startswith(_SCHEMA) or not written.isdecimal():
        raise FormatError(
            f"not a baseline: its schema is {schema!r}, expected {_SCHEMA}{_VERSION}", path=name, fix=_RENEW
        )
    if int(written) < _VERSION:
        raise InputError(
            f"this baseline is of version {written}, whose checksum covers only the lines of "
            f"the queries; expected {_SCHEMA}{_VERSION}",
            where=name,
            fix=_RENEW,
        )
    if int(written) > _VERSION:
        raise InputError(
            f"a newer rankgauge ({data.get('rankgauge')}) wrote this baseline: schema {schema}, "
            f"this one reads {_SCHEMA}{_VERSION}",
            where=name,
            fix="update rankgauge: pip install --upgrade rankgauge",
        )
    return data


def _built(data: Mapping[str, Any]) -> Baseline:
    for key in _KEYS:
        if key not in data:
            raise ValueError(f"{key!r} is missing")
    names = list(data["measures"])
    queries = {
        query: BaselineQuery(
            values={
                name: math.nan if line["values"][name] is None else _finite(line["values"][name]) for name in names
            },
            top=None if line["top"] is None else tuple(map(str, line["top"])),
            judgments=None if line["judgments"] is None else str(line["judgments"]),
        )
        for query, line in data["queries"].items()
    }
    noise = None
    if data["noise"] is not None:
        noise = Noise(
            runs=int(data["noise"]["runs"]),
            bands={name: _finite(data["noise"]["bands"][name]) for name in names},
            jitter={
                query: {name: _finite(line["jitter"][name]) for name in names}
                for query, line in data["queries"].items()
            },
        )
    return Baseline(
        run_name=str(data["run"]),
        version=str(data["rankgauge"]),
        depth=None if data["depth"] is None else int(data["depth"]),
        measures={name: str(data["measures"][name]) for name in names},
        queries=dict(sorted(queries.items())),
        noise=noise,
        settings=dict(data.get("settings", {})),
    )


def _finite(number: Any) -> float:
    if not is_number(number):
        raise TypeError(f"{number!r} is not a value")  # the reader catches this and adds the file
    return float(number)


def _judgment_prints(truth: Qrels) -> dict[str, str]:
    """Return a fingerprint of each query's judgments, independent of order; 1 equals 1.0."""
    docs, grades = truth.table.docs.tolist(), (truth.table.values + 0.0).tolist()
    prints = {}
    for query, (start, stop) in zip(truth.query_ids, pairwise(truth.table.offsets.tolist()), strict=True):
        digest = hashlib.sha256()
        for doc, grade in sorted(zip(docs[start:stop], grades[start:stop], strict=True)):
            digest.update(doc + b"\0" + repr(grade).encode() + b"\n")
        prints[query] = digest.hexdigest()[:_SHORT]
    return prints


def _definition(measure: Measure, evaluation: Evaluation) -> str:
    """Return a fingerprint of the declaration of a measure and the policies."""
    policies = evaluation.policies
    declared = measure.declaration
    parts = [
        declared.name,
        sorted((word, repr(value)) for word, value in measure.arguments.items()),
        *(repr(declared.bounds), declared.better, declared.mean, declared.undefined, policies.ties),
        # Include only non-default policies, so that default baselines keep their fingerprints.
        *keep(
            policies.unjudged != "not relevant" and policies.unjudged,
            policies.draws and f"{policies.draws} draws, seed {policies.seed}",
            evaluation.profile is not None and evaluation.profile.name,
        ),
    ]
    return _sha256(_json(parts))[:_SHORT]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
