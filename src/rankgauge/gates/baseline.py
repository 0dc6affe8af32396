"""What a gate holds a run against: values and first documents per query, in a reviewable file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from rankgauge.core.findings import Finding, explaining
from rankgauge.core.text import many, some
from rankgauge.data.model import Qrels, Run
from rankgauge.data.ranking import ranked
from rankgauge.errors import FormatError, InputError
from rankgauge.evaluation.evaluation import Evaluation, evaluate
from rankgauge.gates.files import text_of
from rankgauge.gates.noise import Noise
from rankgauge.gates.rules import GateRules
from rankgauge.measures.measure import Measure, parse

__all__ = ["Baseline", "BaselineQuery", "faults"]

_SCHEMA = "rankgauge/baseline/"
_VERSION = 2
_SHORT = 16  # hexadecimal digits: 64 bits
_MARKS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
_RENEW = "write it anew: rankgauge gate QRELS RUN --update-baseline"
# At the root of a parsed file, so that a query called like a key of ours is still a query.
_KEYS = ("schema", "rankgauge", "run", "depth", "measures", "fingerprints", "noise", "queries")


@dataclass(frozen=True)
class BaselineQuery:
    """One query of a baseline.

    Attributes:
        values: Measure to value; NaN where undefined.
        top: The first documents, best first.
        judgments: Fingerprint of its judgments.
    """

    values: Mapping[str, float]
    top: tuple[str, ...]
    judgments: str


@dataclass(frozen=True, repr=False)
class Baseline:
    """The values of a run, with what shows whether another run may be compared with it.

    Made by :meth:`from_run` or :meth:`read`; kept as a small file beside the code, one line a
    query, sorted, so that a change of it can be reviewed as a change of code.

    Attributes:
        run_name: What the run was called.
        version: Of rankgauge that made it.
        depth: Length of its longest ranking.
        measures: Measure to fingerprint of its definition.
        queries: Query to values, first documents and fingerprint of the judgments, sorted.
        noise: How much repeated runs of the same system differ; None if that was not measured.

    Example:
        >>> made = Baseline.from_run({"q1": {"d1"}, "q2": {"d2"}}, {"q1": ["d1"], "q2": ["x"]})
        >>> made, made.queries["q1"].top
        (<Baseline 'run': 2 queries by nDCG@10>, ('d1',))
    """

    run_name: str
    version: str
    depth: int
    measures: Mapping[str, str]
    queries: Mapping[str, BaselineQuery]
    noise: Noise | None = None

    @classmethod
    def from_run(
        cls, qrels: Any, run: Any, rules: Any = None, *, noise: Iterable[Any] = (), top: int = 10
    ) -> Baseline:
        """The baseline that a run makes.

        Args:
            qrels: The judgments: anything that :meth:`Qrels.of` takes.
            run: The run: anything that :meth:`Run.of` takes.
            rules: Anything that :meth:`GateRules.of` takes; they name the measures.
            noise: Repeated runs of the same system, two or more, to know what differs by chance.
            top: How many documents of each ranking are kept, for people.

        Raises:
            InputError: If too many queries have no ranking, a fault of the input explains the
                values, or an input cannot be worked with.
        """
        wanted = GateRules.of(rules)
        truth, found = Qrels.of(qrels), Run.of(run)
        if top < 1:
            raise InputError(f"top={top!r} is not possible", fix="write a whole number from 1 on")
        evaluation = evaluate(truth, found, [gated.measure for gated in wanted.measures])
        made = cls.seen(evaluation, truth, found, top)
        empty = made.empty()
        if len(empty) > wanted.max_failed * len(made.queries):
            raise InputError(
                f"{many(len(empty), 'query')} of {len(made.queries)} have no ranking ({some(empty)}"
                f"), more than max_failed = {wanted.max_failed:g} allows: no baseline",
                where=f"run {found.name!r}",
                fix="mend the run, or raise max_failed in the rules",
            )
        for fault in faults(evaluation):
            raise InputError(
                f"{fault.message} ({fault.code}): no baseline", where=f"run {found.name!r}",
                fix=fault.fix,
            )  # fmt: skip
        repeats = [Run.of(repeat) for repeat in noise]
        if not repeats:
            return made
        return made.with_noise(
            Noise.of(truth, repeats, [gated.measure for gated in wanted.measures])
        )

    @classmethod
    def seen(cls, evaluation: Evaluation, truth: Qrels, run: Run, top: int) -> Baseline:
        """The same without asking whether the run is fit to be a baseline."""
        names = [str(measure) for measure in evaluation.measures]
        firsts = dict(_firsts(ranked(run), top))
        prints = _judgment_prints(truth)
        queries = {
            query: BaselineQuery(
                values=dict(zip(names, values, strict=True)),
                top=firsts.get(query, ()),
                judgments=prints[query],
            )
            for query, values in zip(
                evaluation.query_ids, evaluation.per_query.tolist(), strict=True
            )
        }
        return cls(
            run_name=run.name,
            version=metadata.version("rankgauge"),
            depth=int(np.diff(run.table.offsets).max(initial=0)),
            measures={str(m): _definition(m) for m in evaluation.measures},
            queries=dict(sorted(queries.items())),
        )

    def with_noise(self, noise: Noise) -> Baseline:
        """The same baseline, with what is known about its noise."""
        return Baseline(self.run_name, self.version, self.depth, self.measures, self.queries, noise)

    def empty(self) -> list[str]:
        """The queries without any ranking."""
        return [query for query, seen in self.queries.items() if not seen.top]

    def mean(self, measure: str | Measure, queries: Iterable[str] | None = None) -> float:
        """The mean of a measure over these queries (all, if none are named).

        Raises:
            InputError: If the baseline does not have the measure or a query.
        """
        wanted = parse(measure)
        chosen = list(self.queries if queries is None else queries)
        strange = [query for query in chosen if query not in self.queries]
        if str(wanted) not in self.measures or strange:
            what = f"query {strange[0]!r}" if strange else str(wanted)
            raise InputError(
                f"the baseline has no {what}", fix=f"it has {', '.join(self.measures)}"
            )
        return wanted.mean([self.queries[query].values[str(wanted)] for query in chosen])

    def to_json(self) -> str:
        """The file: JSON with one line a query; the same baseline gives the same bytes."""
        heads = {**self._heads(), "fingerprints": self._prints()}
        top = "".join(f"{_json(key)}: {_json(heads[key])},\n" for key in _KEYS[:-1])
        return "{\n" + top + '"queries": {\n' + ",\n".join(self._lines()) + "\n}\n}\n"

    def _heads(self) -> dict[str, Any]:
        """What is above the lines, but for the fingerprints."""
        noise = self.noise
        return {
            "schema": f"{_SCHEMA}{_VERSION}",
            "rankgauge": self.version,
            "run": self.run_name,
            "depth": self.depth,
            "measures": dict(self.measures),
            "noise": None if noise is None else {"runs": noise.runs, "bands": dict(noise.bands)},
        }

    def _lines(self) -> list[str]:
        return [f"{_json(query)}: {_json(self._line(query))}" for query in self.queries]

    def _line(self, query: str) -> dict[str, Any]:
        seen = self.queries[query]
        line: dict[str, Any] = {
            "values": {name: None if math.isnan(v) else v for name, v in seen.values.items()},
            "top": list(seen.top),
            "judgments": seen.judgments,
        }
        if self.noise is not None:
            line["jitter"] = dict(self.noise.jitter[query])
        return line

    def _prints(self) -> dict[str, str]:
        return {
            "queries": _sha256(_json(list(self.queries))),
            "judgments": _sha256(_json([seen.judgments for seen in self.queries.values()])),
            "file": _sha256("\n".join([_json(self._heads()), *self._lines()])),
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file: the whole of it or, if something fails, nothing.

        Raises:
            InputError: If it cannot be written.
        """
        target = Path(path)
        if target.is_file():
            target = target.resolve()  # through a link, to what it points at
        writable = target.parent / f".{secrets.token_hex(8)}.part"
        try:
            with writable.open("wb") as stream:
                stream.write(self.to_json().encode())
                stream.flush()
                os.fsync(stream.fileno())
            writable.replace(target)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"cannot be written: {reason}", where=str(path),
                fix="check that the folder is there and may be written to",
            ) from None  # fmt: skip
        finally:
            with contextlib.suppress(OSError, ValueError):
                writable.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Baseline:
        """Read the file.

        Raises:
            FormatError: If it is damaged, edited by hand, or holds the marks of a merge conflict.
            InputError: If there is no such file, or a newer version of rankgauge wrote it.
        """
        name = str(path)
        text = text_of(
            path,
            missing="there is no baseline yet",
            fix="run once with --update-baseline on the version that is in use, look at the "
            "file, and commit it",
        )
        data = _parsed(text, name)
        try:
            found = _built(data)
            whole = json.loads(found.to_json()) == data
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FormatError(f"not a baseline: {_reason(error)}", path=name, fix=_RENEW) from None
        if not whole:
            raise FormatError(
                "the checksum does not match: the file was edited by hand or merged",
                path=name, fix=_RENEW,
            )  # fmt: skip
        return found

    def __repr__(self) -> str:
        names = ", ".join(self.measures)
        return f"<Baseline {self.run_name!r}: {many(len(self.queries), 'query')} by {names}>"


def faults(evaluation: Evaluation) -> list[Finding]:
    """What explains the values of a run; how many empty rankings are too many, the rules say."""
    return [found for found in explaining(evaluation.findings) if found.code != "P104"]


def _parsed(text: str, name: str) -> dict[str, Any]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(_MARKS):
            raise FormatError(
                "two baselines were merged, and git left its marks", path=name, line=number,
                text=line[:60], fix=f"after the merge {_RENEW}",
            )  # fmt: skip
    try:
        data = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"not a baseline: {error.msg}", path=name, line=error.lineno, fix=_RENEW
        ) from None
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not a baseline: {error}", path=name, fix=_RENEW) from None
    schema = data.get("schema") if isinstance(data, dict) else None
    written = str(schema).removeprefix(_SCHEMA)
    if not str(schema).startswith(_SCHEMA) or not written.isdecimal():
        raise FormatError(
            f"not a baseline: its schema is {schema!r}, wanted {_SCHEMA}{_VERSION}",
            path=name, fix=_RENEW,
        )  # fmt: skip
    if int(written) < _VERSION:
        raise InputError(
            f"this baseline is of version {written}, in which only the lines of the queries are "
            f"protected against edits; wanted {_SCHEMA}{_VERSION}",
            where=name, fix=_RENEW,
        )  # fmt: skip
    if int(written) > _VERSION:
        raise InputError(
            f"a newer rankgauge ({data.get('rankgauge')}) wrote this baseline: schema {schema}, "
            f"this one reads {_SCHEMA}{_VERSION}",
            where=name, fix="update rankgauge: pip install --upgrade rankgauge",
        )  # fmt: skip
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands there twice")
    return found


def _built(data: Mapping[str, Any]) -> Baseline:
    missing = [key for key in _KEYS if key not in data]
    if missing:
        raise ValueError(f"{missing[0]!r} is missing")
    names = list(data["measures"])
    queries = {}
    for query, line in data["queries"].items():
        queries[query] = BaselineQuery(
            values={name: _value(line["values"][name]) for name in names},
            top=tuple(map(str, line["top"])),
            judgments=str(line["judgments"]),
        )
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
        depth=int(data["depth"]),
        measures={name: str(data["measures"][name]) for name in names},
        queries=dict(sorted(queries.items())),
        noise=noise,
    )


def _value(number: Any) -> float:
    return math.nan if number is None else _finite(number)


def _finite(number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise TypeError(f"{number!r} is no value")  # caught by the reader, who knows the file
    return float(number)


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _firsts(run: Run, top: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The first documents of each query."""
    offsets = run.table.offsets.tolist()
    for number, query in enumerate(run.query_ids):
        stop = min(offsets[number + 1], offsets[number] + top)
        yield query, tuple(run.table.docs.take(np.arange(offsets[number], stop)).shown())


def _judgment_prints(truth: Qrels) -> dict[str, str]:
    """A fingerprint of each query's judgments: whatever their order, and 1 is 1.0."""
    docs, grades = truth.table.docs.tolist(), truth.table.values.tolist()
    offsets = truth.table.offsets.tolist()
    prints = {}
    for number, query in enumerate(truth.query_ids):
        rows = range(offsets[number], offsets[number + 1])
        pairs = sorted((docs[row], grades[row] + 0.0) for row in rows)
        digest = hashlib.sha256()
        for doc, grade in pairs:
            digest.update(doc + b"\0" + repr(grade).encode() + b"\n")
        prints[query] = digest.hexdigest()[:_SHORT]
    return prints


def _definition(measure: Measure) -> str:
    """A fingerprint of all that is declared about a measure, and of how ties are broken."""
    declared = measure.declaration
    words = measure.arguments
    said = [declared.name, sorted((word, repr(value)) for word, value in words.items())]
    said += [repr(declared.bounds), declared.better, declared.mean, declared.undefined, "trec"]
    return _sha256(_json(said))[:_SHORT]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
