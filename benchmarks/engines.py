"""The engines: rankgauge and every peer, each with what it can do and how its own pages do it.

Imports next to nothing: a process that is timed from its start loads this file first.
"""

# ruff: noqa: D102 - what a method does is said once, in Engine
from __future__ import annotations

import re
import sys
from importlib.util import find_spec

# ERR is known to us and to gdeval only; RR with a cut-off trec_eval does not have.
_NINETEEN = ("nDCG", "AP", "RR", "P", "R", "Success")
LIBRARIES = ("pandas", "polars")
# What another order of ties may do to a mean, where one score in a hundred is tied.
LOOSE = 0.02

TYPE_CHECKING = False  # as in typing, which costs a start-up three milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TextIO

    Means = dict[str, float]
    Calculate = Callable[[Any], Means]


class Engine:
    """What an engine can do.

    Attributes:
        name: Its name.
        package: The distribution that brings it; "" for a program.
        families: Measures it computes.
        cut_rr: It has RR with a cut-off, too.
        forms: How it can be asked: Python and CLI (of files), dicts, pandas, polars.
        tolerance: How far a mean may be from ours before its time does not count.
        apart: Measures whose ties it orders in its own way: their means may be further off.
        ties: Why means may be further from ours than they are, where that is so.
        other: Which definition differs, so that it is a reference of speed only.
        heavy: Takes seconds to start, so it is asked in one round only.
        large: It is asked for large workloads, too.
        environment: Variables of its processes.
    """

    name = ""
    package = ""
    families = _NINETEEN
    cut_rr = True
    forms: tuple[str, ...] = ()
    tolerance = 1e-6
    apart: tuple[str, ...] = ()
    ties = ""
    other = ""
    heavy = False
    large = True
    environment: dict[str, str] = {}  # noqa: RUF012 - not changed

    def missing(self) -> str:
        """Why it cannot be asked here; "" if it can."""
        return "" if find_spec(self.name) else f"{self.name} is not installed"

    def version(self) -> str:
        """Which one is asked."""
        from importlib.metadata import version

        return f"{self.package} {version(self.package)}"

    def computes(self, measures: Sequence[str]) -> list[str]:
        """Those of the measures that it has."""
        own = [name for name in measures if re.match("[A-Za-z]+", name)[0] in self.families]
        return [name for name in own if self.cut_rr or not name.startswith("RR@")]

    def within(self, measure: str) -> float:
        """How far its mean of a measure may be from ours."""
        return LOOSE if measure in self.apart else self.tolerance

    def command(self, qrels: str, run: str, measures: Sequence[str]) -> list[str]:
        """The words of its command for two files; the run "-" comes through a pipe."""
        raise NotImplementedError

    def parse(self, output: str) -> Means:
        """The means that its command printed."""
        raise NotImplementedError

    def files(self, qrels: str, run: str, measures: Sequence[str]) -> Means:
        """The means, from two files."""
        raise NotImplementedError

    def prepared(self, qrels: Any, measures: Sequence[str]) -> Calculate:
        """What takes a run, as dicts or as a data frame, and returns the means.

        Whatever can be done with the judgments alone is done before.
        """
        raise NotImplementedError


class Rankgauge(Engine):
    """Ours."""

    name = package = "rankgauge"
    families = (*_NINETEEN, "ERR")
    forms = ("Python", "CLI", "dicts", *LIBRARIES)

    def command(self, qrels: str, run: str, measures: Sequence[str]) -> list[str]:
        asked = [word for name in measures for word in ("-m", name)]
        return [sys.executable, "-m", "rankgauge", "evaluate", qrels, run, *asked, "--as", "csv"]

    def parse(self, output: str) -> Means:
        head, row = (line.split(",") for line in output.splitlines())
        return _plain({name: float(mean) for name, mean in zip(head[1:], row[1:], strict=True)})

    def files(self, qrels: str, run: str, measures: Sequence[str]) -> Means:
        import rankgauge

        return _plain(rankgauge.evaluate(rankgauge.read_qrels(qrels), run, measures).mean())

    def prepared(self, qrels: Any, measures: Sequence[str]) -> Calculate:
        import rankgauge

        truth = rankgauge.Qrels.of(qrels)
        return lambda run: _plain(rankgauge.evaluate(truth, run, measures).mean())


def _plain(means: Means) -> Means:
    # The names of measures say all that was decided; what is asked does not.
    return {name.replace("(top=4)", ""): value for name, value in means.items()}


class WithoutCore(Rankgauge):
    """Ours without its compiled core, where there is one."""

    name = "rankgauge, NumPy only"
    environment = {"RANKGAUGE_NATIVE": "0"}  # noqa: RUF012 - not changed

    def missing(self) -> str:
        return "" if find_spec("rankgauge.core._native") else "the compiled core was not built"


class TrecEval(Engine):
    """The program that defines these measures."""

    name = "trec_eval"
    cut_rr = False
    forms = ("CLI",)
    tolerance = 2e-4
    ties = "it prints four decimals, and compares scores as 32-bit floats"

    def missing(self) -> str:
        from shutil import which

        return "" if which("trec_eval") else "no program trec_eval on the PATH"

    def version(self) -> str:
        import subprocess

        said = subprocess.run(["trec_eval", "--version"], capture_output=True, text=True)  # noqa: PLW1510
        return (said.stdout + said.stderr).strip().replace(" version", "")

    def command(self, qrels: str, run: str, measures: Sequence[str]) -> list[str]:
        asked = [word for name in _asked(measures, ".") for word in ("-m", name)]
        return ["trec_eval", *asked, qrels, "/dev/stdin" if run == "-" else run]

    def parse(self, output: str) -> Means:
        rows = [line.split() for line in output.splitlines()]
        return {_ours(name): float(value) for name, _, value in rows}


_STEMS = {"nDCG": "ndcg_cut", "R": "recall", "Success": "success", "P": "P", "": ""}
_WHOLE = {"AP": "map", "RR": "recip_rank"}


def _asked(measures: Sequence[str], apart: str) -> list[str]:
    """Measures as trec_eval takes them: cut-offs of one family in one word."""
    cuts: dict[str, list[str]] = {}
    for name in measures:
        stem, _, cut = name.partition("@")
        cuts.setdefault(_STEMS.get(stem) or _WHOLE[stem], []).append(cut)
    return [stem + (apart + ",".join(found) if all(found) else "") for stem, found in cuts.items()]


def _trec(name: str) -> str:
    stem, _, cut = name.partition("@")
    return f"{_STEMS[stem]}_{cut}" if cut else _WHOLE[stem]


def _ours(name: str) -> str:
    for ours, theirs in _WHOLE.items():
        if name == theirs:
            return ours
    stem, _, cut = name.rpartition("_")
    return f"{ {theirs: ours for ours, theirs in _STEMS.items()}[stem] }@{cut}"


class PytrecEval(Engine):
    """The functions of trec_eval, in Python."""

    name, package = "pytrec_eval", "pytrec-eval-terrier"
    cut_rr = False
    forms = ("Python", "dicts")
    tolerance = 1e-4
    ties = "it compares scores as 32-bit floats"

    def files(self, qrels: str, run: str, measures: Sequence[str]) -> Means:
        import pytrec_eval

        with _opened(qrels) as stream:
            judgments = pytrec_eval.parse_qrel(stream)
        with _opened(run) as stream:
            rankings = pytrec_eval.parse_run(stream)
        return self.prepared(judgments, measures)(rankings)

    def prepared(self, qrels: Any, measures: Sequence[str]) -> Calculate:
        import pytrec_eval

        names = {name: _trec(name) for name in measures}
        evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(_asked(measures, "_")))

        def means(run: dict[str, dict[str, float]]) -> Means:
            rows = evaluator.evaluate(run).values()
            return {
                ours: sum(row[theirs] for row in rows) / len(qrels)
                for ours, theirs in names.items()
            }

        return means


def _opened(path: str) -> TextIO:
    if not path.endswith(".gz"):
        return open(path)  # noqa: PTH123 - as its own pages show it
    import gzip

    return gzip.open(path, "rt")


class IrMeasures(Engine):
    """Many engines behind one door; for these measures, pytrec_eval and one of its own."""

    name, package = "ir_measures", "ir-measures"
    forms = ("Python", "CLI", "dicts", *LIBRARIES)
    tolerance = 1e-4
    apart = ("RR@10",)
    ties = "they come from pytrec_eval (except RR with a cut-off, which is left out)"

    def command(self, qrels: str, run: str, measures: Sequence[str]) -> list[str]:
        asked = "/dev/stdin" if run == "-" else run
        return [sys.executable, "-m", "ir_measures", "--places", "9", qrels, asked, *measures]

    def parse(self, output: str) -> Means:
        rows = [line.split() for line in output.splitlines()]
        return {name: float(value) for name, value in rows}

    def files(self, qrels: str, run: str, measures: Sequence[str]) -> Means:
        import ir_measures

        wanted = [ir_measures.parse_measure(name) for name in measures]
        found = ir_measures.calc_aggregate(
            wanted, ir_measures.read_trec_qrels(qrels), ir_measures.read_trec_run(run)
        )
        return {str(measure): value for measure, value in found.items()}

    def prepared(self, qrels: Any, measures: Sequence[str]) -> Calculate:
        import ir_measures

        wanted = [ir_measures.parse_measure(name) for name in measures]
        evaluator = ir_measures.evaluator(wanted, _for_pandas(qrels))
        return lambda run: {
            str(m): v for m, v in evaluator.calc_aggregate(_for_pandas(run)).items()
        }


def _for_pandas(rows: Any) -> Any:
    """What an engine gets that takes data frames of pandas, and not of polars."""
    return rows.to_pandas() if hasattr(rows, "to_pandas") else rows


_OF_RANX = {
    "nDCG": "ndcg", "AP": "map", "RR": "mrr", "P": "precision", "R": "recall",
    "Success": "hit_rate",
}  # fmt: skip


class Ranx(Engine):
    """Measures compiled by Numba when they are first used (and kept on disk)."""

    name = package = "ranx"
    forms = ("Python", "dicts", *LIBRARIES)
    heavy = True
    tolerance = LOOSE
    ties = "it does not define the order of tied documents"

    def _means(self, qrels: Any, run: Any, measures: Sequence[str]) -> Means:
        import ranx

        names = {name: re.sub("[A-Za-z]+", lambda m: _OF_RANX[m[0]], name) for name in measures}
        found = ranx.evaluate(qrels, run, list(names.values()))
        if len(names) == 1:
            found = dict.fromkeys(names.values(), found)
        return {ours: float(found[theirs]) for ours, theirs in names.items()}

    def files(self, qrels: str, run: str, measures: Sequence[str]) -> Means:
        import ranx

        truth = ranx.Qrels.from_file(qrels, kind="trec")
        kind = {"kind": "gz"} if run.endswith(".gz") else {"kind": "trec"}
        return self._means(truth, ranx.Run.from_file(run, **kind), measures)

    def prepared(self, qrels: Any, measures: Sequence[str]) -> Calculate:
        import ranx

        if isinstance(qrels, dict):
            truth = ranx.Qrels(qrels)
            return lambda run: self._means(truth, ranx.Run(run), measures)
        named = {"q_id_col": "query_id", "doc_id_col": "doc_id"}

        def frame(rows: Any) -> Any:
            # It takes no columns of text but those of objects, which pandas 3 does not make.
            return _for_pandas(rows).astype({"query_id": object, "doc_id": object})

        truth = ranx.Qrels.from_df(frame(qrels), score_col="relevance", **named)
        return lambda run: self._means(truth, ranx.Run.from_df(frame(run), **named), measures)


class ScikitLearn(Engine):
    """Tables of grades and scores, without ids: they are put together for it, in its time."""

    name, package = "sklearn", "scikit-learn"
    families = ("nDCG",)
    forms = ("dicts",)
    other = "the ideal ranking is made of what was retrieved, and equal scores share their gains"
    heavy = True
    large = False

    def prepared(self, qrels: Any, measures: Sequence[str]) -> Calculate:
        import numpy as np
        from sklearn.metrics import ndcg_score

        cuts = {name: int(name.partition("@")[2]) for name in measures}

        def means(run: dict[str, dict[str, float]]) -> Means:
            judged = [qrels.get(query, {}) for query in run]
            grades = [[of.get(d, 0) for d in r] for of, r in zip(judged, run.values(), strict=True)]
            truth = np.array(grades)
            scores = np.array([list(ranking.values()) for ranking in run.values()])
            return {name: float(ndcg_score(truth, scores, k=k)) for name, k in cuts.items()}

        return means


_OF_TORCHMETRICS = {
    "nDCG": "NormalizedDCG", "AP": "MAP", "RR": "MRR", "P": "Precision", "R": "Recall",
    "Success": "HitRate",
}  # fmt: skip


class Torchmetrics(Engine):
    """Tensors of grades and scores, without ids: they are put together for it, in its time."""

    name = package = "torchmetrics"
    forms = ("dicts",)
    other = "what is relevant and was not retrieved does not exist: R, AP and nDCG are larger"
    heavy = True
    large = False

    def prepared(self, qrels: Any, measures: Sequence[str]) -> Calculate:
        import torch
        from torchmetrics import retrieval

        made = {}
        for name in measures:
            stem, _, cut = name.partition("@")
            kind = getattr(retrieval, f"Retrieval{_OF_TORCHMETRICS[stem]}")
            made[name] = kind(top_k=int(cut) if cut else None)

        def means(run: dict[str, dict[str, float]]) -> Means:
            judged = [qrels.get(query, {}) for query in run]
            rankings = [*run.values()]
            grades = torch.tensor(
                [of.get(d, 0) for of, r in zip(judged, rankings, strict=True) for d in r]
            )
            scores = torch.tensor([score for ranking in rankings for score in ranking.values()])
            rows = torch.tensor([n for n, ranking in enumerate(rankings) for _ in ranking])
            found = {}
            for name, metric in made.items():
                truth = grades if name.startswith("nDCG") else grades > 0
                metric.update(scores, truth, indexes=rows)
                found[name] = float(metric.compute())
                metric.reset()
            return found

        return means


OURS = Rankgauge()
PEERS = (
    WithoutCore(),
    TrecEval(),
    PytrecEval(),
    IrMeasures(),
    Ranx(),
    ScikitLearn(),
    Torchmetrics(),
)
ENGINES = {engine.name: engine for engine in (OURS, *PEERS)}
