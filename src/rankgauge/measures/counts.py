"""Counts and judged shares."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rankgauge.data.judged_run import UNRANKED, JudgedRun, Level, Values
from rankgauge.measures.declaration import measure
from rankgauge.measures.tie_means import expected_first


@measure(better="neither", reads="judged", judged_only=False, tie_mean="linear")
def Judged(run: JudgedRun, *, k: int | None = None) -> Values:
    r"""The share of the first k retrieved documents that are judged.

    $$ Judged@k = \frac{|\{ i \le k : i \text{ in the judgments} \}|}{\min(k, n)} $$

    Undefined if nothing was retrieved.

    Use: with every other measure: unjudged documents count as not relevant.
    Beware: compare two systems only if it is similar for both.
    Source: Sakai (2007), Alternatives to bpref, SIGIR.
    """
    return judged_shares(run, [k])[:, 0]


def judged_shares(run: JudgedRun, depths: Sequence[int | None]) -> Values:
    """Return Judged@k at each depth, (Q, K); None stands for the whole ranking."""
    known = np.stack([run.among(run.in_qrels, k) for k in depths], axis=1)
    depth = np.stack([run.depth(k) for k in depths], axis=1)
    return np.where(depth > 0, known / np.maximum(depth, 1), np.nan)


@measure(trec="unj_{k}", better="lower", reads="judged", judged_only=False, tie_mean="linear")
def Unjudged(run: JudgedRun, *, k: int) -> Values:
    r"""The share of the first k ranks with an unjudged document.

    $$ Unjudged@k = \frac{1}{k} | \{ i \le k : i \text{ has no grade} \ge 0 \} | $$

    Ranks below the end of a shorter ranking do not count as unjudged.

    Use: as a warning: if it is high, other values of this run are uncertain.
    Beware: it is not 1 - Judged, which divides by the number of documents retrieved, and counts
    grades below 0 (pooled, not judged) as judged. Hole@k of BEIR and MTEB differs: a document
    judged for any query counts as judged.
    Source: trec_eval 10, measure unj.
    """
    return (run.depth(k) - run.among(run.judged, k)) / k


@measure(trec="num_ret", mean="sum", better="neither", bounds=(0.0, math.inf), judged_only=False, tie_mean="same")
def NumRet(run: JudgedRun) -> Values:
    """The number of documents retrieved; the mean is the sum over queries.

    Use: to check whether runs have the same depth.
    Beware: it does not measure quality.
    Source: trec_eval, measure num_ret.
    """
    return run.retrieved.astype(np.float64)


@measure(trec="num_rel", mean="sum", better="neither", bounds=(0.0, math.inf), judged_only=False, tie_mean="same")
def NumRel(run: JudgedRun, *, rel: Level = 1) -> Values:
    """The number of relevant documents, retrieved or not; the mean is the sum over queries.

    Use: with recall, as its denominator.
    Beware: it depends on the judgments only.
    Source: trec_eval, measure num_rel.
    """
    return run.relevant(rel).astype(np.float64)


@measure(trec="num_rel_ret", mean="sum", bounds=(0.0, math.inf), judged_only=False, tie_mean="linear")
def NumRelRet(run: JudgedRun, *, k: int | None = None, rel: Level = 1) -> Values:
    """The number of relevant documents in the first k; the mean is the sum over queries.

    Use: to report recall as a count.
    Beware: queries with many relevant documents dominate it.
    Source: trec_eval, measure num_rel_ret.
    """
    return run.found(rel, k).astype(np.float64)


@measure(
    trec="num_nonrel_judged_ret",
    mean="sum",
    better="lower",
    bounds=(0.0, math.inf),
    judged_only=False,
    tie_mean="linear",
    monotone=False,
)
def NumNonrelRet(run: JudgedRun, *, k: int | None = None, rel: Level = 1) -> Values:
    """The number of documents judged not relevant in the first k; the mean is the sum over queries.

    Use: with NumRelRet, to distinguish documents judged not relevant from unjudged ones.
    Beware: it is small if few documents are judged.
    Source: trec_eval, measure num_nonrel_judged_ret.
    """
    return np.asarray(run.among(run.judged, k) - run.found(rel, k), dtype=np.float64)


@measure(trec="utility", bounds=(-math.inf, math.inf), tie_mean="same")
def Utility(run: JudgedRun, *, hit: float = 1, noise: float = -1, miss: float = 0, rel: Level = 1) -> Values:
    r"""Set utility: weights for relevant documents retrieved, other retrieved ones, missed ones.

    $$ Utility = hit \cdot f + noise \cdot (n - f) + miss \cdot (R - f) $$

    n is the number of documents retrieved, f the number of relevant ones among them, and R the
    number of all relevant documents. trec_eval has a fourth weight, for documents that are neither
    relevant nor retrieved, which needs the size of the collection; it is 0 by default, as in
    rankgauge.

    Use: if the retriever returns a set, and both kinds of errors have a cost.
    Beware: it is strongly negative for long rankings; queries with many relevant documents dominate
    the mean.
    Source: Hull (1999), The TREC-7 filtering track; trec_eval, measure utility.
    """
    found = run.found(rel)
    wrong, missed = run.retrieved - found, run.relevant(rel) - found
    return np.asarray(hit * found + noise * wrong + miss * missed, dtype=np.float64)


@measure(
    better="lower", undefined="skip", bounds=(1.0, math.inf), also=("first_relevant_rank",), tie_mean=expected_first
)
def FirstRel(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""The rank of the first relevant document.

    $$ FirstRel = \min \{ i : g_i \ge rel \} $$

    Undefined if none was retrieved; these queries are excluded from the mean, with a note.

    Use: with MRR, which does not distinguish ranks of 2 from a mix of rank 1 and no hit.
    Beware: its mean is over the queries with a hit only; report it together with Success.
    Source: Kantor and Voorhees (2000), The TREC-5 confusion track, Information Retrieval 2.
    """
    first = run.first(rel)
    return np.where(first < UNRANKED, first.astype(np.float64), np.nan)
