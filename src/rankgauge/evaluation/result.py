"""`Evaluation`: the values of a run, from any source."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgauge.core.findings import Finding
from rankgauge.core.grouping import group_values
from rankgauge.core.ids import Frozen, IntArray, freeze, id_bytes, show_id
from rankgauge.core.lazy import registered
from rankgauge.core.policies import Policies
from rankgauge.core.text import many
from rankgauge.data.judged_run import BoolArray, Values
from rankgauge.errors import InputError, UnknownName
from rankgauge.measures.measure import Measure, one_of, parse
from rankgauge.rendering.result import Result

if TYPE_CHECKING:
    # Imported on demand to keep the first evaluation fast.
    from rankgauge.rendering.plot_drawing import Plot
    from rankgauge.rendering.tables import Table

_SCHEMA = "rankgauge/evaluation/1"
_MAPPINGS = ("counts", "settings", "coverage")
_DESCRIBED = ("coverage", "findings")
_OF_ANSWERS = ("verdicts", "answers")  # inputs of measures of generated answers


@dataclass(frozen=True)
class AppliedProfile:
    """An applied profile: the requested measures and their deviations from the default.

    Attributes:
        name: The name of the profile.
        tool: The tool and the versions against which the profile was verified.
        asked: The name of each measure as requested, in the order of the measures.
        deviations: The names of the deviations of each measure.
    """

    name: str
    tool: str
    asked: tuple[str, ...]
    deviations: tuple[tuple[str, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AppliedProfile:
        """Create a profile from the result of `to_dict`."""
        return cls(
            str(data["name"]),
            str(data["tool"]),
            tuple(map(str, data["asked"])),
            tuple(tuple(map(str, names)) for names in data["deviations"]),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Frozen, Result):
    """The values of a run, one for each query and measure, with the policies used.

    Returned by :func:`evaluate`. Notebooks display it as a table.

    Attributes:
        run_name: The name of the run.
        query_ids: (Q,) the evaluated queries as text, in the order of the judgments.
        measures: (M,) the measures.
        per_query: (Q, M) float64, NaN where a value is undefined.
        policies: The policies used.
        counts: Numbers of queries, documents, and ties (see `notes`); empty unless the values were
            computed by :func:`evaluate`.
        weights: (Q,) the weight of each query, or None.
        groups: (Q,) the group of each query, or None.
        settings: The settings of the run.
        coverage: The mean share of judged documents (Judged@k) at each cut-off of the measures and
            at 10. Empty if nothing was retrieved.
        profile: The profile of another tool, or None. With a profile, `policies` has the policies
            that all measures share and the defaults for the others; the notes list the differences.
        left_out: (Q, M) bool, True if a query is left out of the mean of a measure because the tool
            averages measures over different queries; None if no query is left out.
        findings: Findings about the input, most severe first, then notes. A finding of severity
            ``error`` explains the numbers, so verdicts are withheld.

    Example:
        >>> from rankgauge import evaluate
        >>> ev = evaluate({"q1": {"d1": 3, "d2": 1}}, {"q1": ["d2", "d1"]}, ["RR", "nDCG@10"])
        >>> ev.mean()
        {'RR': 1.0, 'nDCG@10': 0.7967075809905066}
    """

    _schema = _SCHEMA

    run_name: str
    query_ids: tuple[str, ...]
    measures: tuple[Measure, ...]
    per_query: Values
    policies: Policies
    counts: Mapping[str, int]
    weights: tuple[float, ...] | None = None
    groups: tuple[str, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    coverage: Mapping[int, float] = field(default_factory=dict)
    profile: AppliedProfile | None = None
    left_out: BoolArray | None = None
    findings: tuple[Finding, ...] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        freeze(self.per_query, self.left_out)
        state = vars(self)
        for name in _MAPPINGS:
            if name in state:
                state[name] = MappingProxyType(dict(state[name]))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Compute coverage and findings when read; most evaluations only need the means."""
            make = self.__dict__.get("_describe")
            if name not in _DESCRIBED or (make is None and name not in self.__dict__):
                return super().__getattr__(name)
            if name not in self.__dict__:
                coverage, findings = make()
                self.__dict__.update(coverage=MappingProxyType(coverage), findings=findings)
                self.__dict__.pop("_describe", None)
            return self.__dict__[name]

    @classmethod
    def described_later(
        cls, values: Mapping[str, Any], describe: Callable[[], tuple[dict[int, float], tuple[Finding, ...]]]
    ) -> Evaluation:
        """Create an evaluation with these attributes.

        Coverage and findings are computed by `describe` when one of them is first read.
        """
        evaluation = cls.__new__(cls)
        state = {**values, "_describe": describe}
        for name in _DESCRIBED:
            state.pop(name, None)
        evaluation.__setstate__(state)
        return evaluation

    def __getstate__(self) -> dict[str, Any]:
        state = {part.name: getattr(self, part.name) for part in fields(self)}
        return state | {name: dict(getattr(self, name)) for name in _MAPPINGS}

    @classmethod
    def from_values(
        cls,
        run_name: str,
        query_ids: Iterable[Any],
        values: Mapping[str | Measure, Sequence[float]],
        *,
        settings: Mapping[str, Any] | None = None,
    ) -> Evaluation:
        """Create an evaluation from values that were computed elsewhere.

        It can be compared, gated, saved, and reported like a result of :func:`evaluate`.

        Args:
            run_name: The name of the run.
            query_ids: The query ids.
            values: For each measure, one value per query; NaN if undefined.
            settings: The settings of the run.

        Raises:
            InputError: If the numbers of values and queries differ, a query occurs twice, or a
                value is not a number.
            UnknownName: For an unknown measure.

        Example:
            >>> Evaluation.from_values("judge", ["q1", "q2"], {"RR": [1.0, 0.5]}).mean()
            {'RR': 0.75}
        """
        ids = tuple(show_id(id_bytes(query, "query id")) for query in query_ids)
        measures = tuple(map(parse, values))
        for what, names in {"query": ids, "measure": measures}.items():
            if not names or len(set(names)) < len(names):
                raise InputError(
                    f"a {what} occurs twice, or there are none", where="values", fix=f"pass each {what} once"
                )
        try:
            per_query = np.array([list(column) for column in values.values()], dtype=np.float64).T
        except (TypeError, ValueError):
            per_query = np.zeros(0)
        if per_query.shape != (len(ids), len(measures)) or np.isinf(per_query).any():
            raise InputError(
                f"the values are not one number per query ({many(len(ids), 'query')})",
                where="values",
                fix="pass one number per query, NaN where it is undefined",
            )
        return cls(
            run_name=run_name,
            query_ids=ids,
            measures=measures,
            per_query=per_query,
            policies=Policies(),
            counts={"queries": len(ids)},
            settings=settings or {},
            findings=(
                Finding(
                    "",
                    "info",
                    f"{many(len(ids), 'query')}: values computed elsewhere; judgments, ties, "
                    "and unjudged documents are unknown",
                ),
            ),
        )

    @cached_property
    def undefined(self) -> BoolArray:
        """(Q, M) bool, True where a value is undefined (no relevant document, ...)."""
        cells = np.isnan(self.per_query)
        freeze(cells)
        return cells

    @property
    def notes(self) -> tuple[str, ...]:
        """Texts of `findings`, one sentence each."""
        return tuple(finding.note for finding in self.findings)

    @property
    def input_findings(self) -> tuple[Finding, ...]:
        """Findings of the input checks, each with its fix."""
        return tuple(finding for finding in self.findings if finding.fix)

    def with_findings(self, more: Iterable[Finding]) -> Evaluation:
        """Return the evaluation with more findings; they replace those with the same codes."""
        new = {finding.code: finding for finding in more}
        kept = [new.pop(finding.code, finding) for finding in self.findings]
        return replace(self, findings=(*kept, *new.values()))

    def __getitem__(self, measure: Any) -> float:
        """Return the mean of a measure.

        Raises:
            InputError: If the measure was not evaluated.

        Example:
            >>> Evaluation.from_values("bm25", ["q1", "q2"], {"RR": [1.0, 0.5]})["mrr"]
            0.75
        """
        if not isinstance(measure, str | Measure) or (measure in self._rows and measure not in self._means(None)):
            raise InputError(f"{measure!r:.60} is not a measure", where="evaluation[...]", fix=self._reading(""))
        return self._means(None)[str(one_of(measure, self.measures, self.run_name))]

    def _reading(self, name: str) -> str:
        shown, query = str(self.measures[0]), (self.query_ids or ("q1",))[0]
        with suppress(UnknownName, InputError, StopIteration):
            shown = next(str(measure) for measure in self.measures if measure.name == parse(name).name)
        return (
            f"evaluation[{shown!r}] is a mean, evaluation.value({query!r}, {shown!r}) the value of a query, "
            "evaluation.mean() a dict, and evaluation.to_frame() has all values"
        )

    def mean(self, measure: None = None) -> dict[str, float]:
        """Return the mean of each measure over the queries, by name of the measure; ``evaluation["RR"]`` is one mean.

        The mean is arithmetic unless the measure declares a geometric mean (GMAP) or a sum
        (counts). Undefined values count as 0, or are excluded if the policy or the measure is
        ``skip``. With weights, the mean is ``fsum(w * v) / fsum(w)``. NaN if no query remains.

        Raises:
            InputError: If a measure is passed.
        """
        if measure is not None:
            raise InputError("got a measure", where="evaluation.mean", fix=self._reading(str(measure)))
        return self._means(None)

    def by_group(self) -> dict[str, dict[str, float]]:
        """Return the mean of each measure in each group, by group and measure.

        Raises:
            InputError: If the evaluation was made without groups.
        """
        if self.groups is None:
            raise InputError("this evaluation has no groups", fix="evaluate(..., groups={'q1': 'how-to', ...})")
        rows = group_values((label, row) for row, label in enumerate(self.groups))
        return {label: self._means(np.array(of_label)) for label, of_label in rows.items()}

    def _means(self, rows: IntArray | None) -> dict[str, float]:
        """Return the means over the queries in `rows`, or over all queries."""
        columns, weights, skipped = self.per_query.T, self.weights, self.policies.undefined == "skip"
        if self.left_out is not None:
            columns, skipped = np.array([*map(self.counted, self.measures)]), True
        if rows is not None:
            columns = columns[:, rows]
            weights = None if weights is None else tuple(weights[row] for row in rows.tolist())
        names, simple = _averaged(self.measures)
        # Lists are faster, but need more memory.
        listed = columns if columns.size > 10_000 else columns.tolist()
        if simple and weights is None and columns.size:
            totals, number = [*map(math.fsum, listed)], columns.shape[1]
            if not math.isnan(math.fsum(totals)):
                return dict(zip(names, [total / number for total in totals], strict=True))
        pairs = zip(self.measures, listed, strict=True)
        means = [measure.mean(values, weights, skip_undefined=skipped) for measure, values in pairs]
        return dict(zip(names, means, strict=True))

    def value(self, query_id: Any, measure: str | Measure | None = None) -> float:
        """Return the value of a query, NaN if undefined.

        Raises:
            InputError: If the query or the measure was not evaluated, or one of them is not named.
        """
        if measure is None:
            raise InputError("name a query and a measure", where="evaluation.value", fix=self._reading(str(query_id)))
        row = self._rows.get(query_id)
        if row is None:
            raise InputError(f"query {query_id!r} was not evaluated", fix=self._reading(query_id))
        return float(self.column(measure)[row])

    def column(self, measure: str | Measure) -> Values:
        """Return the value of each query, NaN if undefined.

        Raises:
            InputError: If the measure was not evaluated.
        """
        return self.per_query[:, self.measures.index(one_of(measure, self.measures, self.run_name))]

    def counted(self, measure: Measure) -> Values:
        """Return the value of each query as counted in the mean: undefined values are 0; NaN if excluded."""
        values = measure.counted(self.column(measure), skip_undefined=self.policies.undefined == "skip")
        left_out = False if self.left_out is None else self.left_out[:, self.measures.index(measure)]
        return np.where(left_out, math.nan, values)

    def mean_interval(self, measure: Measure) -> tuple[float, float] | None:
        """Return the 95% interval of an unweighted mean (`Measure.mean_interval`); None without an interval."""
        low, high = measure.mean_interval(self.counted(measure), skip_undefined=True)
        return None if self.weights is not None or math.isnan(low) else (low, high)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {query: row for row, query in enumerate(self.query_ids)}

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the column ``query_id`` and a column for each measure, for any data frame library.

        Example:
            >>> from rankgauge import evaluate
            >>> evaluate({"q1": {"d1"}}, {"q1": ["d1"]}, ["P@1"]).to_columns()
            {'query_id': ['q1'], 'P@1': [1.0]}
        """
        columns: dict[str, list[Any]] = {"query_id": list(self.query_ids)}
        if self.groups is not None:
            columns["group"] = list(self.groups)
        if self.weights is not None:
            columns["weight"] = list(self.weights)
        for number, measure in enumerate(self.measures):
            columns[str(measure)] = self.per_query[:, number].tolist()
        return columns

    def to_frame(self) -> Any:
        """Return the values as a pandas data frame, one row per query; NaN if undefined.

        For other libraries, use `to_columns`: ``polars.DataFrame(evaluation.to_columns())``.

        Raises:
            MissingExtra: If pandas is not installed.
        """
        return type(super().to_frame())(self.to_columns())

    def _data(self) -> dict[str, Any]:
        import json

        means = self.mean()
        data: dict[str, Any] = {
            "run": self.run_name,
            "settings": dict(self.settings),
            "policies": self.policies.describe(),
            "counts": self.counts,
            "coverage": self.coverage,
            "measures": [
                {"name": str(measure), "mean": means[str(measure)], "undefined": int(self.undefined[:, number].sum())}
                for number, measure in enumerate(self.measures)
            ],
            "query_ids": self.query_ids,
            "values": self.per_query,
            "weights": self.weights,
            "groups": self.groups,
            "findings": self.findings,
        }
        if self.groups is not None or self.weights is not None:
            from rankgauge.evaluation.groups import group_means

            data["group_means"] = group_means(self).means
        if self.profile is not None:
            # Early files do not have these fields.
            data |= {"profile": self.profile, "left_out": self.left_out}
        try:
            json.dumps(data["settings"], allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the settings of the run cannot be written as JSON: {error}",
                where=f"run {self.run_name!r}",
                fix="use text, finite numbers, lists, and mappings",
            ) from None
        return data

    @classmethod
    def from_json(cls, text: str) -> Evaluation:
        """Create an evaluation from its JSON.

        Raises:
            InputError: If it is not valid JSON or has an unsupported schema.

        Example:
            >>> from rankgauge import evaluate
            >>> ev = evaluate({"q1": {"d1"}}, {"q1": ["d1"]}, ["P@1"])
            >>> Evaluation.from_json(ev.to_json()) == ev
            True
        """
        import json

        try:
            data = json.loads(text)
            if data["schema"] != _SCHEMA:
                raise InputError(
                    f"the schema is {data['schema']!r}, expected {_SCHEMA!r}",
                    fix="read it with the version of rankgauge that wrote it",
                )
            shape = (len(data["query_ids"]), len(data["measures"]))
            rows = [[math.nan if value is None else value for value in row] for row in data["values"]]
            values = np.array(rows, dtype=float).reshape(shape)
            kind = evaluation_class(data) if cls is Evaluation else cls
            findings = tuple(map(Finding.from_dict, data.get("findings", ())))
            applied, left_out = data.get("profile"), data.get("left_out")
            return kind(
                run_name=data["run"],
                query_ids=tuple(data["query_ids"]),
                measures=tuple(parse(measure["name"]) for measure in data["measures"]),
                per_query=values,
                policies=Policies(**data["policies"]),
                counts=data["counts"],
                coverage={int(k): float(v) for k, v in data["coverage"].items()},
                weights=None if data["weights"] is None else tuple(map(float, data["weights"])),
                groups=None if data["groups"] is None else tuple(data["groups"]),
                settings=data["settings"],
                # Early files have notes as well or instead.
                findings=findings_of_notes(data["notes"], findings) if "notes" in data else findings,
                profile=None if applied is None else AppliedProfile.from_dict(applied),
                left_out=None if left_out is None else np.array(left_out, dtype=bool).reshape(shape),
                **kind.parse_extra_fields(data, shape),
            )
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"not an evaluation in JSON: {error}", fix="use a file written by to_json()") from None

    def extra_fields(self) -> dict[str, Any]:
        """Return the additional JSON fields of a subclass; empty for an evaluation of runs."""
        return {}

    @classmethod
    def parse_extra_fields(cls, data: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
        """Return the additional fields of a subclass from JSON; `shape` is that of the values."""
        del data, shape
        return {}

    def table(self) -> Table:
        """Return a table of the measures and their means, with the notes."""
        from rankgauge.rendering.tables import Table

        means = zip(self.measures, self.mean().values(), strict=True)
        return Table(
            columns=("measure", "mean"),
            rows=tuple((str(measure), mean_cell(measure, mean)) for measure, mean in means),
            title=self.run_name,
            notes=self.notes,
        )

    def plot(self, kind: str = "means", *, measure: str | Measure | None = None) -> Plot:
        """Return a plot of the values (needs ``rankgauge[plots]``). Notebooks display it.

        Args:
            kind: One of `PLOTS`; see :func:`rankgauge.plot`, which also takes several runs.
            measure: The measure of a heat map; the first if omitted.

        Raises:
            InputError: If measures that the kind needs were not evaluated, or not over the same
                queries.
        """
        from rankgauge.rendering.plots import plot

        if self.left_out is not None:
            raise InputError(
                f"the profile {self.profile and self.profile.name} averages these measures over "
                "different queries, so they cannot be plotted together",
                fix="plot measures that it averages over the same queries",
            )
        return plot(self, kind, measure=measure)

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        faults = [f"WARNING: {finding}" for finding in self.input_findings if finding.severity == "error"]
        queries = len(self.query_ids)
        means = ", ".join(f"{name} {value:.4f}" for name, value in list(self.mean().items())[:3])
        text = f"{self.run_name}: {means} over {queries} {'query' if queries == 1 else 'queries'}"
        return ". ".join([*faults[:1], text])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented
        if type(self) is not type(other):
            return False
        for part in (own for own in fields(self) if own.compare):
            mine, theirs = getattr(self, part.name), getattr(other, part.name)
            if isinstance(mine, np.ndarray):
                if not np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"):
                    return False
            elif mine != theirs:
                return False
        return True

    __hash__ = None  # type: ignore[assignment] # holds arrays


@lru_cache(maxsize=64)
def _averaged(measures: tuple[Measure, ...]) -> tuple[tuple[str, ...], bool]:
    """Return the names of measures, and whether all means are arithmetic; cached for loops over runs."""
    return tuple(map(str, measures)), all(measure.declaration.mean == "arithmetic" for measure in measures)


def mean_cell(measure: Measure, value: float) -> float:
    """Return a mean or value as shown in a table: sums are whole numbers."""
    whole = measure.declaration.mean == "sum" and not math.isnan(value)
    return int(value) if whole else value


def evaluation_class(data: Collection[str]) -> type[Evaluation]:
    """Return the class of an evaluation with these fields."""
    return Evaluation if "scores" not in data else registered("answer_evaluation")()


def findings_of_notes(notes: Iterable[str], known: Iterable[Finding] = ()) -> tuple[Finding, ...]:
    """Return findings with these texts, reusing known findings."""
    by_text = {finding.note: finding for finding in known}
    findings = []
    for note in notes:
        text = note.removeprefix("WARNING: ")
        findings.append(by_text.get(note) or Finding("", "info" if text == note else "warning", text))
    return tuple(findings)


def of_answers(evaluation: Evaluation) -> bool:
    """Return whether the values are those of generated answers."""
    return any(measure.declaration.reads in _OF_ANSWERS for measure in evaluation.measures)
