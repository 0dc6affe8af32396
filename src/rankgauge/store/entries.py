"""Saved evaluations: metadata and packed values per query."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import numpy as np

from rankgauge.core.findings import Finding
from rankgauge.core.policies import Policies
from rankgauge.core.text import keep, many
from rankgauge.errors import InputError
from rankgauge.evaluation.answer_judge import comparable_means
from rankgauge.evaluation.result import AppliedProfile, Evaluation, evaluation_class, findings_of_notes
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table

# Kinds of packed parts, besides one column of values per measure.
VALUES, WEIGHTS, GROUPS = "values", "weights", "groups"
LEFT_OUT = "left_out"
OWN = "own"  # fields of a subclass, such as bounds of answer scores


@dataclass(frozen=True, repr=False)
class HistoryEntry(Result):
    """Metadata of a saved evaluation.

    Attributes:
        id: Its number in the store.
        time: The time of the evaluation in UTC; evaluations are ordered by number, not time.
        run: The name of the run.
        label: Free text, such as ``release 2.1``; may be empty.
        settings: Other saved values: latency, name of a model, ...
        run_settings: The settings of the run.
        means: The mean of each measure, by its name.
        policies: The policies of the :class:`Evaluation`.
        counts: Query counts.
        coverage: Mean share of judged documents at each cut-off (Judged@k).
        notes: Notes on interpretation.
        qrels: The fingerprint of the judgments (see :func:`fingerprint`); None if not given.
        ranking: The fingerprint of the run; None if not given.
        collection: The fingerprint of the collection; None if not given.
        query_set: A hash of the query ids, in order.
        queries: The number of queries.
        weighted: Whether means are weighted by query.
        versions: The versions of rankgauge, Python, and NumPy.
        commit: The git commit; None outside a checkout.
        dirty: Whether tracked files had uncommitted changes.
        profile: The profile of another tool used for the evaluation, if any.
        findings: The findings of the `Evaluation`; `notes` are their texts.
    """

    _attributes = (
        "id time=time.isoformat run label settings run_settings means policies=policies.describe counts "
        "coverage notes qrels ranking collection query_set queries weighted versions commit dirty profile "
        "findings"
    )

    id: int
    time: datetime
    run: str
    label: str
    settings: Mapping[str, Any]
    run_settings: Mapping[str, Any]
    means: Mapping[str, float]
    policies: Policies
    counts: Mapping[str, int]
    coverage: Mapping[int, float]
    notes: tuple[str, ...]
    qrels: str | None
    ranking: str | None
    collection: str | None
    query_set: str
    queries: int
    weighted: bool
    versions: Mapping[str, str]
    commit: str | None
    dirty: bool
    profile: AppliedProfile | None
    findings: tuple[Finding, ...]

    @classmethod
    def unread(cls, number: int, read: Callable[[], HistoryEntry]) -> HistoryEntry:
        """Return an entry that is read when it is used, since a list of thousands shows few."""
        entry = object.__new__(cls)
        entry.__dict__.update(id=number, _read=read)
        return entry

    def __getattr__(self, name: str) -> Any:
        if "_read" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.__dict__.update(vars(self._read()))
        del self.__dict__["_read"]
        return getattr(self, name)

    def __post_init__(self) -> None:
        for name in ("settings", "run_settings", "means", "counts", "coverage", "versions"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def short_name(self) -> str:
        """Run and number, such as ``bm25#3``."""
        return f"{self.run}#{self.id}"

    @property
    def name(self) -> str:
        """Short name and label."""
        return self.short_name + (f" ({self.label})" if self.label else "")

    @property
    def made_at(self) -> str:
        """Abbreviated commit, with a star if there were uncommitted changes; may be empty."""
        return "" if self.commit is None else self.commit[:8] + ("*" if self.dirty else "")

    def table(self) -> Table:
        """Return one row for each measure, with its mean."""
        return Table(("measure", "mean"), tuple(self.named_means().items()), title=self.name, notes=self.notes)

    def named_means(self) -> dict[str, float]:
        """Return the means by name; of answers, corrected for the errors of the judge if possible."""
        means = {}
        for name in self.means:
            (mean,), by_judge = means_of([self], parse(name))
            means[f"{name} (by judge)" if by_judge else name] = mean
        return means

    def summary(self) -> str:
        """Return the name and the means in one sentence."""
        means = ", ".join(f"{name} {value:.4f}" for name, value in self.named_means().items())
        return f"{self.name}: {means} over {many(self.queries, 'query')}"


def means_of(entries: Sequence[HistoryEntry], measure: Measure) -> tuple[list[float], bool]:
    """Return the mean of each evaluation, and whether they are those by the judge of answers."""
    raw = [entry.means.get(str(measure), math.nan) for entry in entries]
    return comparable_means(measure, [entry.run_settings for entry in entries], raw)


def obstacles(before: HistoryEntry, after: HistoryEntry) -> tuple[str, ...]:
    """Return differences that make two evaluations incomparable: judgments, policies, weights."""
    # The queries policy may differ: only shared queries are compared.
    names = ("ties", "duplicates", "undefined", "unjudged", "draws", "seed")
    policies = ((name, getattr(before.policies, name), getattr(after.policies, name)) for name in names)
    profiles = ["ours" if e.profile is None else e.profile.name for e in (before, after)]
    plain, weighted = (before, after) if after.weighted else (after, before)
    return keep(
        before.qrels
        and after.qrels
        and before.qrels != after.qrels
        and f"different judgments ({before.qrels[:8]} in {before.short_name}, {after.qrels[:8]} in {after.short_name})",
        *(
            f"different policies ({name}={old} in {before.short_name}, {name}={new} in {after.short_name})"
            for name, old, new in policies
            if old != new
        ),
        profiles[0] != profiles[1]
        and f"different profiles ({profiles[0]} in {before.short_name}, {profiles[1]} in {after.short_name})",
        before.weighted != after.weighted
        and f"means of {weighted.short_name} are weighted by query, those of {plain.short_name} are not",
    )


class HistoryEntries(Result, tuple[HistoryEntry, ...]):
    """Saved evaluations, in the order of saving. Returned by :meth:`History.entries`."""

    __slots__ = ()

    def table(self) -> Table:
        """Return one row for each evaluation."""
        rows = tuple((entry.short_name, f"{entry.time:%Y-%m-%d}", entry.label) for entry in self)
        return Table(("name", "date", "label"), rows)

    def summary(self) -> str:
        """Return the number of evaluations and the latest evaluation."""
        if not self:
            return "no evaluation is saved"
        return f"{many(len(self), 'saved evaluation')}, the latest {self[-1].summary()}"

    def _data(self) -> dict[str, Any]:
        return {"entries": list(self)}


@dataclass(frozen=True)
class Packed:
    """An evaluation in the form in which it is stored."""

    head: str  # the entry's metadata and other small fields, as JSON
    query_set: str  # hash of the query ids
    ids: bytes  # packed query ids
    parts: tuple[tuple[str, str, bytes], ...]  # large fields: kind, name, and packed bytes


def pack(evaluation: Evaluation, about: Mapping[str, Any]) -> Packed:
    """Pack an evaluation; unpacking restores exactly the same evaluation.

    Args:
        evaluation: The evaluation.
        about: The other metadata: label, settings, fingerprints, versions, and commit.
    """
    _check_exact(evaluation, about["settings"])
    ids = zlib.compress(json.dumps(list(evaluation.query_ids)).encode(), 9)
    query_set = hashlib.sha256(zlib.decompress(ids)).hexdigest()
    head = {
        **about,
        "run": evaluation.run_name,
        "run_settings": dict(evaluation.settings),
        "means": evaluation.mean(),
        "policies": evaluation.policies.describe(),
        "counts": dict(evaluation.counts),
        "coverage": {str(k): share for k, share in evaluation.coverage.items()},
        "notes": list(evaluation.notes),
        "findings": [finding.to_dict() for finding in evaluation.findings],
        "query_set": query_set,
        "queries": len(evaluation.query_ids),
        "weighted": evaluation.weights is not None,
    }
    if evaluation.profile is not None:
        head["profile"] = evaluation.profile.to_dict()
    return Packed(json.dumps(head), query_set, ids, tuple(_parts(evaluation)))


def _check_exact(evaluation: Evaluation, settings: Mapping[str, Any]) -> None:
    """Refuse values that JSON would change: tuples, keys that are not text, NaN."""
    kept = {
        "the run's name": evaluation.run_name,
        "the settings of the run": dict(evaluation.settings),
        "the settings": dict(settings),
        "the counts": dict(evaluation.counts),
        "the shares of judged documents": list(evaluation.coverage.values()),
        "the notes": list(evaluation.notes),
        "the groups": None if evaluation.groups is None else list(evaluation.groups),
        "the query ids": list(evaluation.query_ids),
    }
    for what, value in kept.items():
        try:
            same = json.loads(json.dumps(value)) == value
        except (TypeError, ValueError, RecursionError):
            same = False
        if not same:
            raise InputError(
                f"{what} cannot be stored",
                where=f"run {evaluation.run_name!r}",
                fix="use text, finite numbers, lists, and mappings whose keys are text",
            )
    names = [str(measure) for measure in evaluation.measures]
    if len(set(names)) < len(names) or len(set(evaluation.query_ids)) < len(evaluation.query_ids):
        raise InputError("duplicate measure or query", where=f"run {evaluation.run_name!r}", fix="pass each once")


def _parts(evaluation: Evaluation) -> Iterable[tuple[str, str, bytes]]:
    values, own = np.asarray(evaluation.per_query, dtype="<f8"), evaluation.extra_fields()
    parts = keep(
        *(
            (VALUES, str(measure), column.tobytes())
            for measure, column in zip(evaluation.measures, values.T, strict=True)
        ),
        evaluation.left_out is not None and (LEFT_OUT, "", np.packbits(evaluation.left_out).tobytes()),
        evaluation.weights is not None and (WEIGHTS, "", np.asarray(evaluation.weights, dtype="<f8").tobytes()),
        evaluation.groups is not None and (GROUPS, "", json.dumps(list(evaluation.groups)).encode()),
        own and (OWN, "", json.dumps(own).encode()),
    )
    return ((kind, name, zlib.compress(data, 9)) for kind, name, data in parts)


def unpack_ids(packed: bytes, query_set: str) -> tuple[str, ...]:
    """Return the query ids."""
    plain = _unpacked(packed)
    if hashlib.sha256(plain).hexdigest() != query_set:
        raise ValueError("the ids of its queries differ from those stored")
    return tuple(json.loads(plain))


def values_of(packed: bytes, queries: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a packed column of values or weights."""
    values = np.frombuffer(_unpacked(packed), dtype="<f8").astype(np.float64)
    if len(values) != queries:
        raise ValueError(f"{len(values)} values, but {queries} were stored")
    return values


def _unpacked(packed: bytes) -> bytes:
    # The PostgreSQL driver may return a memoryview.
    try:
        return zlib.decompress(bytes(packed))
    except zlib.error as error:
        raise ValueError(f"values cannot be unpacked ({error})") from None


def read_entry(number: int, time: str, head: str) -> HistoryEntry:
    """Return the metadata of a stored evaluation."""
    try:
        known = json.loads(head)
        known["policies"] = Policies(**known["policies"])
        known["notes"] = tuple(known["notes"])
        # Earlier versions stored only the notes.
        saved = [*map(Finding.from_dict, known.get("findings", ()))]
        known["findings"] = findings_of_notes(known["notes"], saved)
        known["coverage"] = {int(k): share for k, share in known["coverage"].items()}
        applied = known.get("profile")
        known["profile"] = None if applied is None else AppliedProfile.from_dict(applied)
        names = {part.name for part in fields(HistoryEntry)} - {"id", "time"}
        return HistoryEntry(
            id=number, time=datetime.fromisoformat(time).astimezone(UTC), **{name: known[name] for name in names}
        )
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the data of evaluation {number} cannot be read ({error})") from None


def unpack(entry: HistoryEntry, query_ids: tuple[str, ...], parts: Mapping[tuple[str, str], bytes]) -> Evaluation:
    """Return an evaluation exactly as it was packed."""
    measures = tuple(map(parse, entry.means))
    try:
        columns = [values_of(parts[VALUES, name], entry.queries) for name in entry.means]
    except KeyError as error:
        raise ValueError(f"there are no values of {error.args[0][1]}") from None
    shape = (entry.queries, len(measures))
    values = np.array(columns, dtype=np.float64).reshape(shape[::-1]).T.copy()
    weights, groups, left_out = (parts.get((part, "")) for part in (WEIGHTS, GROUPS, LEFT_OUT))
    cells = np.unpackbits(np.frombuffer(_unpacked(left_out), np.uint8), count=values.size) if left_out else None
    kind, own = _own_of(parts.get((OWN, "")), values)
    return kind(
        run_name=entry.run,
        query_ids=query_ids,
        measures=measures,
        per_query=values,
        policies=entry.policies,
        counts=entry.counts,
        coverage=entry.coverage,
        findings=entry.findings,
        weights=None if weights is None else tuple(values_of(weights, entry.queries).tolist()),
        groups=None if groups is None else tuple(json.loads(_unpacked(groups))),
        settings=entry.run_settings,
        profile=entry.profile,
        left_out=None if cells is None else cells.astype(np.bool_).reshape(shape),
        **own,
    )


def _own_of(
    packed: bytes | None, values: np.ndarray[Any, np.dtype[np.float64]]
) -> tuple[type[Evaluation], dict[str, Any]]:
    """Return the class of an evaluation and the fields that only this class has."""
    if packed is None:  # earlier versions stored only the values of answers
        return Evaluation, {}
    try:
        data = json.loads(_unpacked(packed))
        kind = evaluation_class(data)
        cells = [[None if math.isnan(cell) else cell for cell in row] for row in values.tolist()]
        return kind, kind.parse_extra_fields(data | {"values": cells}, values.shape)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the data of answers cannot be read ({error})") from None
