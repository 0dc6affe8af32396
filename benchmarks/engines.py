"""Engines: rankgauge and every peer, each used as its own documentation shows.

This module imports almost nothing, since processes timed from their start load it first.
"""

# ruff: noqa: D102 - methods are documented once, in Engine
from __future__ import annotations

import re
import sys
from importlib.util import find_spec

# Only rankgauge and gdeval have ERR; trec_eval has no RR with a cut-off.
_NINETEEN = ("nDCG", "AP", "RR", "P", "R", "Success")
LIBRARIES = ("pandas", "polars")
# Largest effect of a different tie order on a mean, with one score in a hundred tied.
LOOSE = 0.02

TYPE_CHECKING = False  # importing typing would add three milliseconds to the start
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TextIO

    Means = dict[str, float]
    Calculate = Callable[[Any], Means]


class Engine:
    """An engine and its capabilities.

    Attributes:
        name: The name.
        package: The Python distribution; "" for a program.
        families: Families of measures that it computes.
        cut_rr: Whether it computes RR with a cut-off.
        forms: Supported inputs: Python and CLI (files), dicts, pandas, polars.
        tolerance: Largest difference from our mean at which its time counts.
        loose: Measures with a different tie order, which have the tolerance `LOOSE`.
        ties: Why its means may differ within the tolerance.
        other: The definition that differs, if it is a reference for speed only.
        heavy: Whether it takes seconds to start and runs in one round only.
        large: Whether it runs large workloads.
        environment: Environment variables of its processes.
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
        """Return why it cannot run here; "" if it can."""
        return "" if find_spec(self.name) else f"{self.name} is not installed"

    def version(self) -> str:
        """Return the package and its version."""
        from importlib.metadata import version

        return f"{self.package} {version(self.package)}"

    def computes(self, measures: Sequence[str]) -> list[str]:
        """Return the measures that it computes."""
        own = [name for name in measures if re.match("[A-Za-z]+", name)[0] in self.families]
        return [name for name in own if self.cut_rr or not name.startswith("RR@")]

    def within(self, measure: str) -> float:
        """Return the largest accepted difference from our mean of a measure."""
        return LOOSE if measure in self.apart else self.tolerance

    def command(self, qrels: str, run: str, measures: Sequence[str]) -> list[str]:
        """Return its command line for two files; the run "-" is read from standard input."""
        raise NotImplementedError

    def parse(self, output: str) -> Means:
        """Return the means printed by its command."""
        raise NotImplementedError

    def files(self, qrels: str, run: str, measures: Sequence[str]) -> Means:
        """Return the means of two files."""
        raise NotImplementedError

    def prepared(self, qrels: Any, measures: Sequence[str]) -> Calculate:
        """Return a function from a run, as dicts or a data frame, to the means.

        All work that needs only the judgments is done before.
        """
        raise NotImplementedError


class Rankgauge(Engine):
    """Rankgauge."""

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
    # Names of measures in results include the default of top; requested names do not.
    return {name.replace("(top=4)", ""): value for name, value in means.items()}


class WithoutCore(Rankgauge):
    """Rankgauge without its compiled core."""

    name = "rankgauge, NumPy only"
    environment = {"RANKGAUGE_NATIVE": "0"}  # noqa: RUF012 - not changed

    def missing(self) -> str:
        return "" if find_spec("rankgauge.core._native") else "the compiled core was not built"


class TrecEval(Engine):
    """trec_eval, the reference implementation of these measures."""

    name = "trec_eval"
    cut_rr = False
    forms = ("CLI",)
    tolerance = 2e-4
    ties = "it prints four decimals, and compares scores as 32-bit floats"

    def missing(self) -> str:
        from shutil import which

        return "" if which("trec_eval") else "no trec_eval program on the PATH"

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
    """Return arguments of trec_eval: the cut-offs of a family in one argument."""
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
    """The measures of trec_eval in Python."""

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
            return {ours: sum(row[theirs] for row in rows) / len(qrels) for ours, theirs in names.items()}

        return means


def _opened(path: str) -> TextIO:
    if not path.endswith(".gz"):
        return open(path)  # noqa: PTH123 - as its own pages show it
    import gzip

    return gzip.open(path, "rt")


class IrMeasures(Engine):
    """A common interface to several engines; for these measures, pytrec_eval and its own RR."""

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
        found = ir_measures.calc_aggregate(wanted, ir_measures.read_trec_qrels(qrels), ir_measures.read_trec_run(run))
        return {str(measure): value for measure, value in found.items()}

    def prepared(self, qrels: Any, measures: Sequence[str]) -> Calculate:
        import ir_measures

        wanted = [ir_measures.parse_measure(name) for name in measures]
        evaluator = ir_measures.evaluator(wanted, _for_pandas(qrels))
        return lambda run: {str(m): v for m, v in evaluator.calc_aggregate(_for_pandas(run)).items()}


def _for_pandas(rows: Any) -> Any:
    """Convert polars data frames for engines that accept only pandas."""
    return rows.to_pandas() if hasattr(rows, "to_pandas") else rows


_OF_RANX = {"nDCG": "ndcg", "AP": "map", "RR": "mrr", "P": "precision", "R": "recall", "Success": "hit_rate"}


class Ranx(Engine):
    """Measures compiled by Numba at first use and cached on disk."""

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
            # ranx accepts text only in columns of type object, which pandas 3 does not create.
            return _for_pandas(rows).astype({"query_id": object, "doc_id": object})

        truth = ranx.Qrels.from_df(frame(qrels), score_col="relevance", **named)
        return lambda run: self._means(truth, ranx.Run.from_df(frame(run), **named), measures)


class ScikitLearn(Engine):
    """Arrays of grades and scores without ids; building them is part of the time."""

    name, package = "sklearn", "scikit-learn"
    families = ("nDCG",)
    forms = ("dicts",)
    other = "the ideal ranking contains only retrieved documents, and tied documents share their gains"
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
    "nDCG": "NormalizedDCG",
    "AP": "MAP",
    "RR": "MRR",
    "P": "Precision",
    "R": "Recall",
    "Success": "HitRate",
}


class Torchmetrics(Engine):
    """Tensors of grades and scores without ids; building them is part of the time."""

    name = package = "torchmetrics"
    forms = ("dicts",)
    other = "relevant documents that were not retrieved are ignored, so R, AP, and nDCG are larger"
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
            grades = torch.tensor([of.get(d, 0) for of, r in zip(judged, rankings, strict=True) for d in r])
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
PEERS = (WithoutCore(), TrecEval(), PytrecEval(), IrMeasures(), Ranx(), ScikitLearn(), Torchmetrics())
ENGINES = {engine.name: engine for engine in (OURS, *PEERS)}
