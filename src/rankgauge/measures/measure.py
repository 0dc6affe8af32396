"""Measures with their parameters: parsing, values, and means."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Self

import numpy as np

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.grammar import EXAMPLES, VOCABULARY, Value, format_name, plain_key, split_name
from rankgauge.core.recommendations import USE_CASES
from rankgauge.errors import InputError, UnknownName
from rankgauge.measures.declaration import DECLARED, NAMES, TREC, Declaration, Kernel, Values

_SMALLEST = 1e-5
# Inputs with a number of relevant documents per query.
_OF_RANKS = ("binary", "grades", "judged")
_DIGITS = re.compile(r"[0-9]+(\.[0-9]+)?")
# One name of a list: commas in parentheses or before a number (P.5,10) are part of a name.
_LISTED = re.compile(r"(?:[^(),]|\((?:[^()]|\([^()]*\))*\)|,(?!\s*[^\W\d]))+")

# Parameter names of other tools.
_WORDS = {"dcg": "gain", "gains": "gain", "cutoff": "k", "top_k": "k", "max_rel": "top", "beta": "p", "T": "goal"}


# Each measure of a class by name and parameters.
_MEASURES: dict[tuple[type, str, tuple[tuple[str, Value], ...]], Any] = {}


@dataclass(frozen=True, eq=False)
class Measure:
    """A measure with its parameters, such as ``nDCG @ 10`` or ``parse("nDCG@10")``.

    Equal measures are one object, so that looking up a set of measures is fast; ``parse(str(m)) == m``.

    Attributes:
        name: Name of the declaration.
        params: Parameters that differ from the defaults, sorted by name.

    Example:
        >>> m = parse("RR(rel=2)@10")
        >>> m.name, m.k, m.rel, str(m)
        ('RR', 10, 2, 'RR(rel=2)@10')
    """

    name: str
    params: tuple[tuple[str, Value], ...] = ()

    def __new__(cls, name: str, params: tuple[tuple[str, Value], ...] = ()) -> Self:
        """Return the measure with this name and these parameters."""
        return _MEASURES.setdefault((cls, name, params), super().__new__(cls))

    @cached_property
    def declaration(self) -> Declaration:
        """Name, direction, bounds, kind of mean, and input of the measure with these parameters."""
        return DECLARED[self.name].variant(dict(self.params))

    @property
    def arguments(self) -> dict[str, Value]:
        """All parameters with their values, including defaults."""
        declared = self.declaration
        words = {**declared.defaults, **dict(self.params)}
        return {word: words[word] for word in words if word in declared.words}

    @property
    def level(self) -> float | None:
        """Lowest grade that counts; None if every grade above 0 counts."""
        rel = self.arguments.get("rel")
        return float(rel) if isinstance(rel, int | float) else None

    @property
    def cutoff(self) -> int | None:
        """The rank after `@` in the name, such as 10 in ``nDCG@10``; None without one, or relative to R."""
        k = dict(self.params).get("k")
        return k if isinstance(k, int) else None

    @property
    def family(self) -> Measure:
        """The measure without its cut-off: DCG of ``DCG@10``."""
        return Measure(self.name, tuple(param for param in self.params if param[0] != "k"))

    def __getattr__(self, word: str) -> Value:
        if word in VOCABULARY and word in self.declaration.words:
            return self.arguments.get(word)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {word!r}")

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), (self.name, self.params)

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        declared, bound = self.declaration, dict(self.params)
        for name, params in declared.shown.items():
            if params.items() <= bound.items():
                rest = [(word, value) for word, value in self.params if word not in params]
                return format_name(name, rest, declared.at)
        return format_name(self.name, self.params, declared.at)

    def __repr__(self) -> str:
        return str(self)

    def __matmul__(self, at: float | str) -> Measure:
        """Return the measure at a cut-off: ``nDCG @ 10``, or ``nDCG @ "0.5R"`` relative to R."""
        return self(**{self.declaration.at: at})

    def __call__(self, **params: Any) -> Measure:
        """Return the measure with other parameters: ``RR(rel=2)``.

        Raises:
            UnknownName: If the measure does not have a parameter, or its value is invalid.
        """
        declared = DECLARED[self.name]
        bound = dict(self.params)
        for name, raw in params.items():
            word = name if name in declared.words else _WORDS.get(name, name)
            if word not in declared.words:
                raise _unknown_parameter(self.name, name, declared)
            if raw is None and declared.defaults.get(word, 0) is None:
                bound.pop(word, None)
                continue
            bound[word] = VOCABULARY[word].check(raw, f"{self.name}({name}={raw})")
        for word in declared.stated:
            bound.setdefault(word, declared.defaults[word])
        kept = {
            word: value
            for word, value in bound.items()
            if word in (*declared.required, *declared.stated) or value != declared.defaults[word]
        }
        measure = Measure(self.name, tuple(sorted(kept.items())))
        for word in kept:
            if word not in measure.declaration.words:
                raise _unknown_parameter(str(measure), word, measure.declaration)
        return measure

    def complete(self) -> Measure:
        """Return the measure itself if no required parameter is missing.

        Raises:
            UnknownName: If one is missing, or another parameter needs a cut-off.
        """
        declared, bound = self.declaration, dict(self.params)
        for word in declared.required:
            if word not in bound:
                example = self(**{word: EXAMPLES[word]})
                whole = f", or Set{self.name} for all that was retrieved" if f"Set{self.name}" in DECLARED else ""
                raise UnknownName(
                    f"{self.name} needs {word}: {VOCABULARY[word].meaning}", fix=f"write {example}{whole}"
                )
        for word, value in (("norm", "k"), ("ideal", "topk")):
            if bound.get(word) == value and "k" not in bound:
                raise UnknownName(f"{self}: {word}={value} needs a cut-off", fix=f"write {self}@10")
        if isinstance(bound.get("k"), str) and declared.reads not in _OF_RANKS:
            raise UnknownName(f"{self}: {declared.reads} have no number R of relevant documents", fix="write @10")
        return self

    def values(self, data: Any) -> Values:
        """Return the value for each query of a judged run, (Q,), NaN where undefined.

        Args:
            data: A `JudgedRun`, or the other input of the measure (see `Declaration.reads`).

        Raises:
            InputError: If the measure has no kernel.
        """
        kernel, words, judged_only = self._call
        return _measured(kernel, data.judged_only() if judged_only else data, words)

    @property
    def has_tie_mean(self) -> bool:
        """Whether the mean over all orders of equal scores has a closed form."""
        return bool(self.declaration.tie_mean)

    @property
    def monotone(self) -> bool:
        """Whether moving a document with a higher grade up never makes the value worse.

        If so, ordering ties by grade (``best`` and ``worst``) gives the bounds of the value.
        """
        gain = dict(self.params).get("gain")
        if not isinstance(gain, tuple):
            return self.declaration.monotone
        # Grades without an entry are their own gain.
        gains = dict(gain)
        above = math.floor(max(gains)) + 1
        # Gains are checked for every integer grade up to 100.
        grades = sorted({*gains, *map(float, range(min(above, 100) + 1)), float(above)})
        nondecreasing = all(gains.get(a, a) <= gains.get(b, b) for a, b in pairwise(grades))
        return self.declaration.monotone and nondecreasing

    def tie_mean(self, run: Any) -> Values:
        """Return the mean over all orders of equal scores, (Q,), NaN where undefined.

        Raises:
            InputError: If this mean has no closed form.
        """
        how = self.declaration.tie_mean
        if how == "":
            raise InputError(
                f"{self} has no closed form for the mean over all orders of equal scores",
                fix="omit the measure, use another ties policy, or estimate the mean: draws=1000",
            )
        kernel, words, judged_only = self._call
        seen = run.judged_only() if judged_only else run
        if how == "linear":
            return _measured(lambda part, **of: kernel(part.averaged(), **of), seen, words)
        return _measured(kernel if how == "same" else how, seen, words)

    @cached_property
    def _call(self) -> tuple[Kernel, Mapping[str, Value], bool]:
        """The kernel, its parameters, and whether unjudged documents are removed."""
        declared = self.declaration
        if declared.kernel is None:
            raise InputError(
                f"{self} is not computed from a run: it reads {declared.reads}",
                fix="compute it from answers: rankgauge answers evaluate FILE",
            )
        words = self.arguments
        return declared.kernel, words, bool(words.pop("judged_only", False))

    def mean(
        self, values: Sequence[float] | Values, weights: Sequence[float] | None = None, *, skip_undefined: bool = False
    ) -> float:
        """Return the mean of values: arithmetic, geometric (floor 1e-5), or, for counts, the sum.

        Args:
            values: One value per query, NaN where undefined.
            weights: One weight per query, such as its traffic. Sums ignore weights.
            skip_undefined: Whether to exclude undefined values. Otherwise they count as 0, unless
                the measure always excludes them.

        Returns:
            The mean; NaN without values, or if all weights are 0.
        """
        declared = self.declaration
        skipped = skip_undefined or declared.undefined == "skip"
        listed = values.tolist() if isinstance(values, np.ndarray) else values
        if declared.mean == "arithmetic" and weights is None:
            number, total = len(listed), math.fsum(listed)
            if math.isnan(total):
                known = np.asarray(values)[~np.isnan(values)]
                number, total = len(known) if skipped else number, math.fsum(known.tolist())
            return total / number if number else math.nan
        shares = [1.0] * len(listed) if weights is None else weights
        pairs = list(zip(shares, listed, strict=True))
        if skipped:
            pairs = [(w, v) for w, v in pairs if not math.isnan(v)]
        else:
            pairs = [(w, 0.0 if math.isnan(v) else v) for w, v in pairs]
        how = self.declaration.mean
        if how == "sum":
            return math.fsum(v for _, v in pairs)
        whole = math.fsum(w for w, _ in pairs)
        if not whole:
            return math.nan
        if how == "geometric":
            logs = math.fsum(w * math.log(max(v, _SMALLEST)) for w, v in pairs)
            return math.exp(logs / whole)
        return math.fsum(w * v for w, v in pairs) / whole

    def mean_interval(self, values: Values, *, skip_undefined: bool = False) -> tuple[float, float]:
        """Return the 95% interval of an unweighted mean, within the bounds of the measure.

        The interval is a t interval of the values that count in the mean. For measures of answers,
        whose values are often 0 or 1, both bounds are those of
        :func:`rankgauge.stats.mean_lower_bound`; for values 0 and 1 they are those of Clopper and
        Pearson.

        Args:
            values: One value per query, NaN where undefined.
            skip_undefined: As for :meth:`mean`.

        Returns:
            The bounds; NaN for fewer than two values, a sum, or a geometric mean, and for equal
            values of answers.
        """
        from rankgauge import stats

        counted = self.counted(values, skip_undefined=skip_undefined)
        known = counted[~np.isnan(counted)]
        least, most = self.declaration.bounds
        if len(known) < 2 or self.declaration.mean != "arithmetic":
            return math.nan, math.nan
        if self.declaration.reads not in {"verdicts", "answers"}:
            interval = stats.t_interval(known)
            return max(interval.low, least), min(interval.high, most)
        if known.min() == known.max():
            return math.nan, math.nan
        low = most + stats.mean_lower_bound(known - most, 0.975, least - most)
        high = least - stats.mean_lower_bound(least - known, 0.975, least - most)
        return max(least, low), min(most, high)

    def counted(self, values: Values, *, skip_undefined: bool = False) -> Values:
        """Return the values as used in the mean: undefined values are 0, or NaN if excluded.

        Example:
            >>> import numpy as np
            >>> parse("RR").counted(np.array([0.5, np.nan])).tolist()
            [0.5, 0.0]
        """
        if skip_undefined or self.declaration.undefined == "skip":
            return values
        return np.nan_to_num(values, nan=0.0)

    def differences(self, values: Values, others: Values, *, skip_undefined: bool = False) -> Values:
        """Return the difference for each query, as used in means; NaN if either value is excluded.

        If the measure has a geometric mean, the differences are between natural logarithms (floor
        1e-5), and their mean shows which geometric mean is higher. Rounding errors become 0.

        Example:
            >>> import numpy as np
            >>> parse("RR").differences(np.array([0.5, np.nan]), np.array([1.0, 1.0])).tolist()
            [-0.5, -1.0]
        """
        first = self.counted(values, skip_undefined=skip_undefined)
        second = self.counted(others, skip_undefined=skip_undefined)
        if self.declaration.mean == "geometric":
            first, second = (np.log(np.maximum(part, _SMALLEST)) for part in (first, second))
        difference: Values = first - second
        return np.where(np.abs(difference) <= TOLERANCE, 0.0, difference)

    def improvements(self, differences: Values) -> Values:
        """Return the differences with their sign set so that positive values are improvements.

        Example:
            >>> import numpy as np
            >>> parse("FirstRel").improvements(np.array([-1.0, 2.0])).tolist()
            [1.0, -2.0]
        """
        return -differences if self.declaration.better == "lower" else differences

    def judged_by_model(self, settings: Mapping[str, Any]) -> bool:
        """Return whether values of answers follow from labels of a judge that is not a person.

        Args:
            settings: Settings of the evaluation, with the `judge`.

        Example:
            >>> parse("Faithfulness").judged_by_model({"judge": {"name": "ann", "person": True}})
            False
        """
        judge = settings.get("judge")
        return self.declaration.reads == "verdicts" and not (isinstance(judge, Mapping) and judge.get("person"))

    def best(self, values: Sequence[float]) -> tuple[int, ...]:
        """Return the positions of the best value; several if there are ties.

        NaN is never best, and measures without a direction have no best value.

        Example:
            >>> parse("AP").best([0.25, 0.5, 0.5])
            (1, 2)
        """
        better = self.declaration.better
        known = [value for value in values if not math.isnan(value)]
        if better == "neither" or not known:
            return ()
        best = max(known) if better == "higher" else min(known)
        return tuple(place for place, value in enumerate(values) if abs(value - best) <= TOLERANCE)

    def trec_name(self) -> str:
        """Return the name of the measure in trec_eval, or an empty string if it has none."""
        declared, bound = self.declaration, dict(self.params)
        at = bound.pop(declared.at, None)
        for pattern, params in declared.trec.items():
            if params == bound and ("{" in pattern) == (at is not None):
                name = pattern.format(**{declared.at: at})
                # iprec_at_recall_0.12 is not the name of IPrec@0.123.
                if at is None or name.endswith(f"_{at}") or parse(name) == self:
                    return name
        return ""


def _measured(kernel: Kernel, run: Any, words: Mapping[str, Value]) -> Values:
    """Return the values of a kernel; a cut-off relative to R becomes that of each query."""
    k = words.get("k")
    if not isinstance(k, str):
        return kernel(run, **words)
    relevant = run.relevant(words.get("rel") or 1)
    # As Rprec_mult of trec_eval: the product plus 0.9, rounded down.
    depths = np.maximum((float(k[:-1] or 1) * relevant + 0.9).astype(np.int64), 1)
    values = np.full(len(run), np.nan)
    for depth in np.unique(depths[relevant > 0]).tolist():
        rows = np.flatnonzero((depths == depth) & (relevant > 0))
        values[rows] = kernel(run.of_queries(rows), **{**words, "k": depth})
    return values


def _unknown_parameter(name: str, word: str, declared: Declaration) -> UnknownName:
    return UnknownName(
        f"{name} has no parameter {word!r}", fix=f"its parameters are {', '.join(sorted(declared.words))}"
    )


def parse_directed(text: str | Measure) -> Measure:
    """Parse the name of a measure for which higher or lower values are better.

    Raises:
        UnknownName: As in `parse`.
        InputError: If the measure has no better direction.
    """
    measure = parse(text)
    if measure.declaration.better == "neither":
        raise InputError(
            f"{measure} has no better direction", where="measure", fix="choose another, such as nDCG@10 or AP"
        )
    return measure


def parse(text: str | Measure, dialect: str | None = None) -> Measure:
    """Parse the name of a measure.

    Args:
        text: ``Name(param=value)@k`` as in ir_measures (``nDCG@10``, ``RR(rel=2)@10``), a name of
            trec_eval (``ndcg_cut_10``, ``map``), ranx, BEIR, MTEB, or another tool, or an informal
            name (``MRR@10``, ``Hit Rate@5``, ``top-5 accuracy``).
        dialect: The tool that the name is from (``ranx``, ``beir``, ``mteb``, ``trec_eval`` ...),
            for names that denote different measures in different tools. Names that the tool does
            not have are parsed as without a dialect.

    Raises:
        UnknownName: If the name is unknown (with the nearest names), is ambiguous, lacks a required
            parameter, has an invalid parameter value, or is not a measure of a run (with the
            reason).

    Example:
        >>> parse("ndcg_cut_10"), parse("MRR"), parse("Hit Rate@5")
        (nDCG@10, RR, Success@5)
        >>> parse("map@100"), parse("map@100", dialect="sentence-transformers")
        (AP@100, AP(norm=min(k,R))@100)
    """
    measures = parse_all(text, dialect)
    if len(measures) > 1:
        declared = measures[0].declaration
        curve = declared.curve == tuple(dict(m.params).get(declared.at) for m in measures)
        what = f"a curve of {len(measures)} values" if curve else f"a list of {len(measures)} measures"
        raise UnknownName(f"{text} is {what}", fix=f"name one of them: {measures[1]}")
    return measures[0]


def one_of(measure: str | Measure, measures: Iterable[Measure], where: str = "") -> Measure:
    """Return the measure of this name among evaluated ones.

    Raises:
        InputError: If it was not evaluated.
    """
    known = [*measures]
    wanted = parse(measure) if isinstance(measure, str) or measure not in known else measure
    if wanted not in known:
        near = [each for each in known if each.name == wanted.name] or known
        raise InputError(f"{wanted} was not evaluated", where=where, fix=f"evaluated: {', '.join(map(str, near))}")
    return wanted


def parse_all(text: str | Measure, dialect: str | None = None) -> tuple[Measure, ...]:
    """Return the measures of a name: one, all points of a curve (``IPrec``), or those of a list.

    Args:
        text: The name, or several separated by commas; ``P.5,10`` of trec_eval stands for two
            measures. A measure of ir_measures is also accepted, such as ``ir_measures.nDCG @ 10``.
        dialect: As in `parse`.
    """
    if isinstance(text, Measure):
        return _expand(text)
    if type(text).__module__.partition(".")[0] == "ir_measures":
        text, dialect = str(text), "ir_measures"
    if not isinstance(text, str):
        raise InputError(f"got {type(text).__name__}, expected a measure", fix='pass a name such as "nDCG@10"')
    if dialect is not None and not isinstance(dialect, str):
        raise InputError(f"got {type(dialect).__name__} for dialect", fix='pass the name of a tool, as in "ranx"')
    return _parse_name(text, dialect)


@lru_cache(maxsize=1024)
def _parse_name(text: str, dialect: str | None) -> tuple[Measure, ...]:
    """Return the measures of a name; cached, since loops over runs parse the same names."""
    text = text.strip(", ")
    text = ",".join(USE_CASES[text].measures) if text in USE_CASES else text
    parts = _LISTED.findall(text) if len(text) <= 5000 else []
    if len(parts) > 1 and ",".join(parts) == text:
        return tuple(measure for part in parts for measure in _parse_name(part, dialect))
    if dialect is not None:
        return _translate(text, dialect) or _parse_name(text, None)
    try:
        measures, failed = _plain(text), None
    except UnknownName as error:
        measures, failed = None, error
    # Most names are ours: the tables of other tools are imported only for other names.
    measures = measures or _translate(text, None)
    if measures is None:
        from rankgauge.measures.translation import no_such_name

        raise failed or no_such_name(split_name(text))
    return measures


def _translate(text: str, dialect: str | None) -> tuple[Measure, ...] | None:
    """Return the measures of a name in another tool; None if no tool has it."""
    from rankgauge.measures.translation import no_such_name, translate

    names = translate(text, dialect)
    if names is None:
        return None
    measures: list[Measure] = []
    for name in names:
        parts = _plain(name)
        if parts is None:
            # An invalid part of a list, such as P.5,x, is an error although other parts are valid.
            raise no_such_name(split_name(name))
        measures += parts
    return tuple(measures)


def _plain(text: str) -> tuple[Measure, ...] | None:
    """Return the measures of a name of rankgauge or trec_eval; None for other names."""
    of_trec = _trec_measure(text.strip())
    if of_trec is not None:
        return _expand(of_trec)
    spelled = split_name(text)
    key = plain_key(spelled.name)
    if key not in NAMES:
        return None
    name, params = NAMES[key]
    bare = Measure(name)(**params)
    at = bare.declaration.at
    settings: dict[str, Any] = dict(spelled.params)
    if spelled.at is not None:
        if at not in bare.declaration.words:
            raise UnknownName(f"{text!r}: {name} has no cut-off", fix=f"write {name}")
        if at in settings:
            raise UnknownName(f"{text!r} has two cut-offs", fix=f"write {name}@{spelled.at}")
        settings[at] = spelled.at
    try:
        measure = bare(**settings)
    except UnknownName as error:
        raise UnknownName(error.what, where=text.strip(), fix=error.fix) from None
    return _expand(measure)


def _trec_measure(text: str) -> Measure | None:
    """Return the measure of a trec_eval name; None for other names."""
    if text in TREC and not TREC[text][2] and text not in DECLARED:
        name, params, _ = TREC[text]
        return Measure(name)(**params)
    has_decimals = text.startswith(("iprec_at_recall_", "Rprec_mult_"))
    stem, joint, at = (text if has_decimals else text.replace(".", "_", 1)).rpartition("_")
    if joint and stem + "_" in TREC and _DIGITS.fullmatch(at):
        name, params, word = TREC[stem + "_"]
        return Measure(name)(**params, **{word: at})
    return None


def _expand(measure: Measure) -> tuple[Measure, ...]:
    declared = measure.declaration
    if declared.curve and declared.at not in dict(measure.params):
        return tuple(measure @ value for value in declared.curve)
    return (measure().complete(),)


def list_measures(reads: str = "") -> tuple[Measure, ...]:
    """Return every measure of rankings, without parameters, in the order of the documentation.

    Args:
        reads: Return instead the measures with this input: ``verdicts``, or ``answers`` for
            measures of the texts of answers.

    Example:
        >>> [m.name for m in list_measures()][:3]
        ['P', 'R', 'RelP']
    """
    return tuple(
        Measure(name)
        for name, declared in DECLARED.items()
        if (declared.reads == reads if reads else declared.kernel is not None)
    )
