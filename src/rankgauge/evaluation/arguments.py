"""What an evaluation was asked for, checked: measures, queries, policies, weights, groups."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rankgauge.core.ids import id_bytes, show_id
from rankgauge.core.policies import Policies
from rankgauge.data.model import Qrels, Run, read_qrels
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.blocks import Truth
from rankgauge.evaluation.plan import Plan
from rankgauge.formats.layout import RUN, columns_of
from rankgauge.formats.lines import Source
from rankgauge.formats.memory import is_frame
from rankgauge.formats.readers import read_ids
from rankgauge.measures.measure import Measure, parse_all

if TYPE_CHECKING:
    # Loaded where a measure reads more than grades.
    from rankgauge.data.special_qrels import SpecialQrels

__all__ = [
    "DEFAULT_CUTOFFS",
    "DEFAULT_MEASURES",
    "Queries",
    "blocks_of",
    "groups_of",
    "judged_by",
    "planned",
    "policies_of",
    "read_judgments",
    "selected",
    "truth_of",
    "weights_of",
    "which",
]

Queries: TypeAlias = Literal["all", "intersection"] | Iterable[Any] | os.PathLike[str]

DEFAULT_CUTOFFS = (1, 3, 5, 10)
DEFAULT_MEASURES = (
    *(f"{name}@{k}" for k in DEFAULT_CUTOFFS for name in ("P", "R", "F", "Success", "nDCG")),
    "RR",
    "AP",
)
# Weights up to here can be added without overflow.
_MOST = 1e100


def selected(queries: Queries) -> Iterable[Any] | None:
    """The ids of the queries that are averaged; None where a word says which."""
    if isinstance(queries, os.PathLike):
        return read_ids(queries)
    return None if isinstance(queries, str) else list(queries)


def which(queries: Queries) -> Literal["all", "intersection", "given"]:
    """Which queries are averaged, as the policies say it."""
    if isinstance(queries, os.PathLike):
        return "given"
    if not isinstance(queries, Iterable):
        raise InputError(
            f"got {queries!r:.60} for the queries", where="queries",
            fix="choose all, intersection, or a list of ids",
        )  # fmt: skip
    if not isinstance(queries, str):
        return "given"
    if queries == "all":
        return "all"
    if queries == "intersection":
        return "intersection"
    raise UnknownName(
        f"queries={queries!r} is not possible", fix="choose all, intersection, or a list of ids"
    )


def planned(
    given: str | Measure | Iterable[str | Measure] | None, dialect: str | None = None
) -> Plan:
    """What the measures that were asked for need; names are read as the tool `dialect` does."""
    names: tuple[Any, ...]
    if given is None:
        names = DEFAULT_MEASURES
    elif isinstance(given, str | Measure):
        names = (given,)
    elif isinstance(given, Iterable):
        names = tuple(given)
    else:
        raise InputError(
            f"got {given!r:.60} for the measures", where="measures",
            fix='give names, such as ["nDCG@10", "AP"]',
        )  # fmt: skip
    for name in names:
        if not isinstance(name, str | Measure):
            parse_all(name)  # which refuses it
    return _kept_plan(names, None if given is None else dialect)


def truth_of(source: Any, plan: Plan) -> Truth:
    """The judgments as the measures read them."""
    if not plan.reads:
        qrels = Qrels.of(source)
        return Truth(qrels, qrels)
    from rankgauge.data.special_judgments import SPECIAL_QRELS

    detail = SPECIAL_QRELS[plan.reads].of(source)
    return Truth(detail.qrels, detail.qrels, detail)


def judged_by(source: Any, measures: str | Measure | Iterable[str | Measure] | None) -> Any:
    """The judgments as an evaluation by these measures takes them: made once, used often."""
    truth = truth_of(source, planned(measures))
    return truth.qrels if truth.detail is None else truth.detail


def read_judgments(
    path: Source,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    format: str | None = None,
) -> Qrels | SpecialQrels:
    """Read judgments as these measures need them, such as by subtopic.

    Args:
        path: A file, or what else :func:`read_qrels` or the reader of such judgments takes.
        measures: Names (``"alpha_nDCG@10"``) or measures.
        format: The format, where name and first line do not say it.

    Returns:
        `Qrels`; or, if one of the measures reads more than grades, `SubtopicQrels`, `SampledQrels`
        or `PreferenceQrels`.

    Raises:
        InputError: If the file cannot be read as such.
        UnknownName: For a measure nobody knows.

    Example:
        >>> from rankgauge.sample import sample_path
        >>> read_judgments(sample_path("qrels.txt"), "AP")
        <Qrels: 30 queries, 289 judgments>
    """
    reads = planned(measures).reads
    if not reads:
        return read_qrels(path, format=format)
    from rankgauge.data.special_judgments import SPECIAL_QRELS

    return SPECIAL_QRELS[reads].read(path, format)


@lru_cache(maxsize=256)
def _kept_plan(names: tuple[str | Measure, ...], dialect: str | None) -> Plan:
    """What these measures need: kept, since a loop over runs asks for the same each time."""
    # Each once: a column has one name.
    found = dict.fromkeys(measure for name in names for measure in parse_all(name, dialect))
    if not found:
        raise InputError(
            "no measure was asked for", where="measures", fix='name one, such as "nDCG@10"'
        )
    return Plan(tuple(found))


def policies_of(words: tuple[Any, ...], draws: int = 0, seed: int = 0) -> Policies:
    """Kept by their words; what is no word is refused by the policies themselves."""
    policies = _kept_policies(*words) if all(map(_is_text, words)) else Policies(*words)
    return replace(policies, draws=draws, seed=seed) if (draws, seed) != (0, 0) else policies


def _is_text(word: Any) -> bool:
    return isinstance(word, str)


_kept_policies = lru_cache(maxsize=64)(Policies)


def blocks_of(run: Any) -> Iterator[Any]:
    """The run, or its blocks if it is an iterator of them."""
    if not isinstance(run, Iterator):
        yield run
        return
    first = next(run, None)
    if first is None:
        raise InputError(
            "the iterator is empty", where="run", fix="yield at least one block of queries"
        )
    if not _is_block(first):
        yield chain([first], run)
        return
    yield first
    yield from run


def _is_block(item: Any) -> bool:
    """Whether it is a run of some queries; otherwise it is one row of a run."""
    if isinstance(item, Run):
        return True
    if isinstance(item, Mapping):
        columns = columns_of(item, RUN)
        return columns is None or not isinstance(item[columns.query], str | int | bytes)
    return is_frame(item)


def _per_query(given: Any, query_ids: Sequence[bytes], what: str) -> list[Any]:
    """What is given for each query, in the order of the evaluation."""
    # A pandas series has items too.
    if not hasattr(given, "items"):
        raise InputError(
            f"got {type(given).__name__} for the {what}s, wanted a mapping",
            where=f"{what}s",
            fix=f"give {what}s as {{query id: {what}}}",
        )
    try:
        known = {id_bytes(query, "query id"): value for query, value in given.items()}
    except InputError as error:
        raise InputError(error.what, where=f"{what}s", fix=error.fix) from None
    for query in query_ids:
        if query not in known:
            raise InputError(
                f"query {show_id(query)!r} has no {what}",
                where=f"{what}s",
                fix=f"give one to every evaluated query ({len(query_ids)} of them)",
            )
    return [known[query] for query in query_ids]


def groups_of(given: Any, query_ids: Sequence[bytes]) -> tuple[str, ...]:
    """The group of each query."""
    labels = _per_query(given, query_ids, "group")
    for query, label in zip(query_ids, labels, strict=True):
        if label is None or label != label:  # noqa: PLR0124 - only NaN differs from itself
            raise InputError(
                f"query {show_id(query)!r} has no group",
                where="groups",
                fix=f"give one to every evaluated query ({len(query_ids)} of them)",
            )
    return tuple(_sayable(str(label)) for label in labels)


def _sayable(text: str) -> str:
    """The text with lone surrogates escaped, which could not be written to any file."""
    return text.encode("utf-8", "backslashreplace").decode()


def weights_of(given: Any, query_ids: Sequence[bytes]) -> tuple[float, ...]:
    """The weight of each query."""
    shares = []
    for query, weight in zip(query_ids, _per_query(given, query_ids, "weight"), strict=True):
        try:
            share = float(weight)
        except (TypeError, ValueError):
            share = math.nan
        if not 0 <= share <= _MOST:
            raise InputError(
                f"weight {weight!r} of query {show_id(query)!r} is not possible",
                where="weights",
                fix=f"a weight is a number from 0 to {_MOST:g}",
            )
        shares.append(share)
    if not any(shares):
        raise InputError(
            "all weights are 0", where="weights", fix="give one query a weight above 0"
        )
    return tuple(shares)
