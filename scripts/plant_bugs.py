"""Plants bugs in copies of the package, one at a time, and looks whether the tests find them.

A test that no bug can fail proves nothing. Each bug is a small replacement of text, and the text
must stand in its file exactly once: when the code has moved on, this script says so and stops.

    python scripts/plant_bugs.py [WORDS]    # only bugs whose name holds all the words

Ends with 1 if a bug survives.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The quick part: loops, pytrec_eval and the laws, then the join.
TESTS = ("tests/kernels/test_measures.py", "tests/test_judged.py", "tests/test_join.py")
# What stands above the measures has tests of its own.
TESTS_OF = {
    "comparison.py": ("tests/test_comparison.py",),
    "differences.py": ("tests/test_comparison.py",),
    "remarks.py": ("tests/test_comparison.py",),
    **dict.fromkeys(
        [
            f"gating/{name}.py"
            for name in (
                "baseline",
                "contracts",
                "decision",
                "latency",
                "noise",
                "paired",
                "rules",
                "verdict",
            )
        ],
        (
            "tests/gating/test_baseline.py",
            "tests/gating/test_gate.py",
            "tests/gating/test_rules.py",
        ),
    ),
    **dict.fromkeys(
        [f"history/{name}.py" for name in ("changes", "entries", "store", "trends")],
        (
            "tests/history/test_history_changes.py",
            "tests/history/test_history_store.py",
            "tests/history/test_history_trends.py",
            "tests/history/test_history_failures.py",
        ),
    ),
    "fingerprints.py": ("tests/test_fingerprints.py",),
    "reports/gates.py": ("tests/reports/test_report_gates.py",),
}
AT_ONCE = 2
PATIENCE = 400


@dataclass(frozen=True)
class Bug:
    """A replacement of `old` by `new` in one file of the package."""

    name: str
    file: str
    old: str
    new: str


_RR = "first = np.where(found, 1.0 / run.rank, 0.0).max(axis=1)"
_BEST = "best = -np.sort(-pool, axis=1)[:, :k]"

BUGS = (
    # ---- binary
    Bug("P: divided by what was retrieved", "kernels/binary.py",
        "return np.count_nonzero(run.hits(rel, k), axis=1) / k",
        "return np.count_nonzero(run.hits(rel, k), axis=1) / np.maximum(run.depth(k), 1)"),
    Bug("R: cut-off forgotten", "kernels/binary.py",
        "return _share(np.count_nonzero(run.hits(rel, k), axis=1), run.relevant(rel))",
        "return _share(np.count_nonzero(run.hits(rel), axis=1), run.relevant(rel))"),
    Bug("F: beta not squared", "kernels/binary.py", "weight = beta * beta", "weight = beta"),
    Bug("F: looks at what was retrieved, not at k", "kernels/binary.py",
        "return _f_measure(found, relevant, np.full(len(found), k), beta)",
        "return _f_measure(found, relevant, run.depth(k), beta)"),
    Bug("Success: at rank 1 only", "kernels/binary.py",
        "return (np.count_nonzero(run.hits(rel, k), axis=1) > 0).astype(np.float64)",
        "return (np.count_nonzero(run.hits(rel, 1), axis=1) > 0).astype(np.float64)"),
    Bug("RR: rank off by one", "kernels/binary.py", _RR, _RR.replace("run.rank", "(run.rank + 1)")),
    Bug("RR: last relevant document", "kernels/binary.py", _RR,
        "first = np.where(found, 1 / run.rank, 1).min(axis=1) * found.any(axis=1)"),
    Bug("RR: undefined as 0", "kernels/binary.py",
        "return _share(first, run.relevant(rel), divide=False)", "return first"),
    Bug("AP: divided by the relevant documents found", "kernels/binary.py",
        "    else:\n        divisor = relevant\n", "    else:\n        divisor = found\n"),
    Bug("AP: min(k,R) is k", "kernels/binary.py",
        "divisor = np.minimum(relevant, k)", "divisor = np.full(len(relevant), k)"),
    Bug("AP: norm=retrieved is R", "kernels/binary.py",
        "divisor = np.maximum(found, 1)", "divisor = relevant"),
    Bug("AP: precision counts from 0", "kernels/binary.py",
        "return run.total(np.where(found, counts / run.rank, 0.0)), counts[:, -1]",
        "return run.total(np.where(found, (counts - 1) / run.rank, 0.0)), counts[:, -1]"),
    Bug("GMAP: first 10 ranks only", "kernels/binary.py",
        "total, _ = _precisions(run, None, rel)", "total, _ = _precisions(run, 10, rel)"),
    Bug("Rprec: window one short", "kernels/binary.py",
        "(run.rank <= relevant[:, None])", "(run.rank < relevant[:, None])"),
    Bug("Rprec: window of all judged documents", "kernels/binary.py",
        "(run.rank <= relevant[:, None])", "(run.rank <= run.n_judged[:, None])"),
    Bug("SetP: divided by what is judged", "kernels/binary.py",
        "return _share(np.count_nonzero(run.hits(rel), axis=1), run.retrieved)",
        "return _share(np.count_nonzero(run.hits(rel), axis=1), run.n_judged)"),
    Bug("SetR: relevance level forgotten in the divisor", "kernels/binary.py",
        "return _share(np.count_nonzero(run.hits(rel), axis=1), run.relevant(rel))",
        "return _share(np.count_nonzero(run.hits(rel), axis=1), run.relevant(1))"),
    Bug("SetF: precision of the relevant, not of the retrieved", "kernels/binary.py",
        "return _f_measure(found, run.relevant(rel), run.retrieved, beta)",
        "return _f_measure(found, run.relevant(rel), run.n_judged, beta)"),
    Bug("SetAP: found counted once", "kernels/binary.py",
        "product = found * found /", "product = found /"),
    Bug("IPrec: rounded up", "kernels/binary.py",
        "(recall * run.relevant(rel) + 0.9).astype(np.int64)",
        "np.ceil(recall * run.relevant(rel)).astype(np.int64)"),
    Bug("IPrec: rounded, as trec_eval 10", "kernels/binary.py",
        "(recall * run.relevant(rel) + 0.9)", "(recall * run.relevant(rel) + 0.5)"),
    Bug("IPrec: not interpolated", "kernels/binary.py",
        "reached = found & (counts >= wanted[:, None])",
        "reached = found & (counts == wanted[:, None])"),
    Bug("IPrecAvg: ten points", "kernels/binary.py",
        "run.total(points) / len(_LEVELS)", "run.total(points[:, 1:]) / 10"),
    Bug("RBP: exponent starts at 1", "kernels/binary.py",
        "powers[0] = 1.0", "powers[0] = p"),
    Bug("RBP: not normalised", "kernels/binary.py",
        "return (1 - p) * run.total(np.where(run.hits(rel, k)",
        "return run.total(np.where(run.hits(rel, k)"),
    Bug("RBPres: pooled documents count as judged", "kernels/binary.py",
        "seen = run.judged if k is None else run.judged & (run.rank <= k)\n    return 1 - (1 - p)",
        "seen = run.in_qrels if k is None else run.in_qrels & (run.rank <= k)\n"
        "    return 1 - (1 - p)"),
    Bug("shares: undefined as 0", "kernels/binary.py",
        "return np.where(whole > 0, part / divisor, np.nan)",
        "return np.where(whole > 0, part / divisor, 0.0)"),
    # ---- coverage
    Bug("Judged: pooled documents left out", "kernels/coverage.py",
        "seen = run.in_qrels if k is None else run.in_qrels & (run.rank <= k)",
        "seen = run.judged if k is None else run.judged & (run.rank <= k)"),
    Bug("Judged: divided by k", "kernels/coverage.py",
        "looked_at = run.depth(k)",
        "looked_at = run.depth(k) if k is None else np.full(len(run), k)"),
    Bug("NumRet: judged documents only", "kernels/coverage.py",
        "return run.retrieved.astype(np.float64)",
        "return np.count_nonzero(run.in_qrels, axis=1).astype(np.float64)"),
    Bug("NumRel: retrieved ones only", "kernels/coverage.py",
        "return run.relevant(rel).astype(np.float64)",
        "return np.count_nonzero(run.hits(rel), axis=1).astype(np.float64)"),
    Bug("NumRelRet: cut-off forgotten", "kernels/coverage.py",
        "return np.count_nonzero(run.hits(rel, k), axis=1).astype(np.float64)",
        "return np.count_nonzero(run.hits(rel), axis=1).astype(np.float64)"),
    Bug("FirstRel: counts from 0", "kernels/coverage.py",
        "first.astype(np.float64), np.nan)", "first.astype(np.float64) - 1, np.nan)"),
    # ---- graded
    Bug("DCG: discount of the next rank", "judged.py",
        "1 / math.log2(rank + 1) for rank", "1 / math.log2(rank + 2) for rank"),
    Bug("DCG: natural logarithm", "judged.py",
        "1 / math.log2(rank + 1) for rank", "1 / math.log(rank + 1) for rank"),
    Bug("DCG: cut-off < k", "kernels/graded.py",
        "seen = gains if k is None else np.where(run.rank <= k, gains, 0.0)",
        "seen = gains if k is None else np.where(run.rank < k, gains, 0.0)"),
    Bug("DCG: discount of the column, not of the rank", "kernels/graded.py",
        "return run.total(seen * discounts(run.rank))",
        "return run.total(seen * discounts(np.arange(1, seen.shape[1] + 1)))"),
    Bug("nDCG: ideal not cut at k", "kernels/graded.py", _BEST, _BEST.removesuffix("[:, :k]")),
    Bug("nDCG: ideal of what was retrieved", "kernels/graded.py",
        '    if ideal == "judged":\n        pool = judged\n',
        '    if ideal == "judged":\n        pool = gains\n'),
    Bug("nDCG: ideal not sorted by gain", "kernels/graded.py", _BEST, "best = pool[:, :k]"),
    Bug("nDCG: ideal=topk is ideal=retrieved", "kernels/graded.py",
        "pool = np.where(run.rank <= k, gains, 0.0)", "pool = gains"),
    Bug("nDCG: undefined where nothing was found", "kernels/graded.py",
        "np.where((judged > 0).any(axis=1), value, np.nan)", "np.where(whole > 0, value, np.nan)"),
    Bug("nDCG: undefined as 0", "kernels/graded.py",
        "np.where((judged > 0).any(axis=1), value, np.nan)", "value"),
    Bug("gain: exponential without - 1", "kernels/graded.py",
        "return np.ldexp(1.0, whole.astype(np.int32)) - 1",
        "return np.ldexp(1.0, whole.astype(np.int32))"),
    Bug("gain: fractions of a grade cut off", "kernels/graded.py",
        "if (whole == grades).all():", "if True:"),
    Bug("gain: a map forgets other grades", "kernels/graded.py",
        "known = np.where(own == grade, worth, known)",
        "known = np.where(own == grade, worth, 0.0)"),
    Bug("gain: a map applied to its own result", "kernels/graded.py",
        "known = np.where(own == grade, worth, known)",
        "known = np.where(known == grade, worth, known)"),
    Bug("ERR: top one higher", "kernels/graded.py",
        "math.pow(2.0, top)", "math.pow(2.0, top + 1)"),
    Bug("ERR: divided by 2^top - 1", "kernels/graded.py",
        "math.pow(2.0, top)", "(math.pow(2.0, top) - 1)"),
    Bug("ERR: the reader passes the first rank by chance", "kernels/graded.py",
        "reaches[:, 1:] = np.multiply.accumulate(1 - stops, axis=1)[:, :-1]",
        "reaches = np.multiply.accumulate(1 - stops, axis=1)"),
    Bug("ERR: cut-off forgotten", "kernels/graded.py",
        "seen = run.judged if k is None else run.judged & (run.rank <= k)\n    stops",
        "seen = run.judged\n    stops"),
    # ---- partial
    Bug("bpref: bounded by the non-relevant alone", "kernels/partial.py",
        "np.maximum(np.minimum(run.non_relevant(rel), relevant), 1)",
        "np.maximum(run.non_relevant(rel), 1)"),
    Bug("bpref: bounded by the relevant alone", "kernels/partial.py",
        "np.maximum(np.minimum(run.non_relevant(rel), relevant), 1)",
        "np.maximum(relevant, 1)"),
    Bug("bpref: more above than R counts on", "kernels/partial.py",
        "lost = np.minimum(above, relevant[:, None]) /", "lost = above /"),
    Bug("bpref: pooled documents count against", "kernels/partial.py",
        "above = np.cumsum(run.judged & ~found, axis=1, dtype=np.int64)",
        "above = np.cumsum(run.in_qrels & ~found, axis=1, dtype=np.int64)"),
    Bug("infAP: another epsilon", "kernels/partial.py",
        "_EPSILON = 0.00001", "_EPSILON = 0.001"),
    Bug("infAP: pool of judged documents only", "kernels/partial.py",
        "pool_above = _above(run.in_qrels)",
        "pool_above = _above(run.judged)"),
    Bug("infAP: counts the document itself as above", "kernels/partial.py",
        "rel_above = _above(found)", "rel_above = _above(found) + found"),
    # ---- declared
    Bug("GMAP: another floor", "kernels/measure.py", "_SMALLEST = 1e-5", "_SMALLEST = 1e-6"),
    Bug("a name forgets judged_only", "kernels/measure.py",
        'if words.pop("judged_only", False):\n            run = run.judged_only()',
        'words.pop("judged_only", False)'),
    # ---- what every kernel reads
    Bug("cut-off < k", "judged.py",
        "return found if k is None else found & (self.rank <= k)",
        "return found if k is None else found & (self.rank < k)"),
    Bug("relevant only above the level", "judged.py",
        "found = self.judged & (self.grade >= rel)", "found = self.judged & (self.grade > rel)"),
    Bug("R counts only above the level", "judged.py",
        "np.count_nonzero(self.ideal >= rel, axis=1)",
        "np.count_nonzero(self.ideal > rel, axis=1)"),
    Bug("padding counts as judged not relevant", "judged.py",
        "(self.ideal >= 0) & (self.ideal < rel)", "(self.ideal < rel)"),
    Bug("sums in the order NumPy likes", "judged.py",
        "np.cumsum(values, axis=1, dtype=np.float64)[:, -1]",
        "np.sum(values, axis=1, dtype=np.float64)"),
    Bug("judged_only keeps the old ranks", "judged.py",
        "rank = np.where(judged, np.arange(1, judged.shape[1] + 1), UNRANKED)",
        "rank = np.where(judged, np.take_along_axis(self.rank, first, axis=1), UNRANKED)"),
    Bug("judged_only forgets how much is left", "judged.py",
        "retrieved=np.count_nonzero(judged, axis=1),", "retrieved=self.retrieved,"),
    Bug("judged_only lengthens ties", "judged.py",
        "np.where(judged, np.take_along_axis(self.tie_first, first, axis=1), UNRANKED)",
        "np.take_along_axis(self.tie_first, first, axis=1)"),
    # ---- the join
    Bug("ties by ascending id", "join.py",
        "new[order] = spans", "new[order] = spans[::-1]"),
    Bug("ties in the order given", "join.py", "place = _moved(place, spans, by_id)", "pass"),
    Bug("ranks count from 0", "join.py",
        "base = table.offsets[query] - 1", "base = table.offsets[query]"),
    Bug("worst first", "join.py",
        "keys = _gather(-table.values, rows, filled, np.inf)",
        "keys = _gather(table.values, rows, filled, np.inf)"),
    Bug("an order that is not stable", "join.py",
        'inside = np.argsort(keys, axis=1, kind="stable")',
        'inside = np.argsort(keys[:, ::-1], axis=1, kind="stable")\n'
        "        inside = keys.shape[1] - 1 - inside"),
    Bug("grade -1 is judged", "join.py",
        "judged=filled & (grade >= 0)", "judged=filled & (grade >= -1)"),
    Bug("pooled documents are not in the judgments", "join.py",
        "in_qrels=filled,", "in_qrels=filled & (grade >= 0),"),
    Bug("ideal without grade 0", "model.py",
        "rows = np.flatnonzero(self.table.values >= 0)",
        "rows = np.flatnonzero(self.table.values > 0)"),
    Bug("ideal ascending", "model.py",
        "np.lexsort((-grades, numbers))", "np.lexsort((grades, numbers))"),
    Bug("the hash alone decides", "join.py",
        "same &= table.docs.same(rows[open_rows], qrels.table.docs, candidates)", "pass"),
    Bug("another query's judgment", "join.py",
        "same = _query_of(qrels.table, candidates) == of_row[rows[open_rows]]",
        "same = candidates >= 0"),
    Bug("the second of two equal keys is lost", "join.py",
        "open_rows = open_rows[~same]\n", "open_rows = open_rows[:0]\n"),
    Bug("a tie runs on into the next query", "join.py",
        "starts[table.offsets] = True", "starts[0] = starts[-1] = True"),
    Bug("padding has a rank", "join.py",
        "rank=_gather(self.rank, rows, filled, UNRANKED)",
        "rank=_gather(self.rank, rows, filled, 1)"),
    Bug("queries of the run in its own order", "join.py",
        "by_number = by_number[of_run[by_number] >= 0]",
        "by_number = np.flatnonzero(of_run >= 0)"),
    Bug("a query that is missing takes its neighbour's place", "join.py",
        "present = self.numbers[at] == queries", "present = at >= 0"),
    Bug("documents retrieved of another query", "join.py",
        "retrieved=np.diff(table.offsets)[by_number]",
        "retrieved=np.diff(table.offsets)[: len(by_number)]"),
    Bug("what did not move in a tie moves", "join.py",
        "return np.where(spans[at] == place, new[at], place)", "return new[at]"),
    Bug("ties that cannot matter are counted", "join.py",
        "return np.unique(numbers[heads[highest > lowest]])",
        "return np.unique(numbers[heads[size > 1]])"),
    Bug("unjudged documents of a tie are forgotten", "join.py",
        "lowest = np.where(members < size, np.minimum(lowest, unjudged), lowest)",
        "lowest = lowest * 1.0"),
    # ---- ids
    Bug("ids compared by their first eight bytes", "ids.py",
        "equal[left] = self._words(number, rows[left]) == other._words(number, other_rows[left])",
        "pass"),
    Bug("ids ordered by length first", "ids.py",
        "return np.lexsort((*keys, groups))", "return np.lexsort((*keys[1:], keys[0], groups))"),
    Bug("ids ordered as little-endian words", "ids.py",
        "~self._words(number, rows).byteswap()", "~self._words(number, rows)"),
    # ---- comparisons
    Bug("baseline minus run", "differences.py",
        "return apart(values[:, 0], values[:, 1])", "return apart(values[:, 1], values[:, 0])"),
    Bug("what rounding sets apart is a difference", "differences.py",
        "result[np.abs(result) <= SAME] = 0.0", "pass"),
    Bug("undefined is 0 where it is left out", "differences.py",
        "return values[known], known",
        "return np.nan_to_num(values, nan=0.0), np.arange(len(values))"),
    Bug("a lower value is never better", "differences.py",
        'return -moved if measure.declaration.better == "lower" else moved', "return moved"),
    Bug("an interval of one standard deviation", "differences.py",
        "half = reach * sd / math.sqrt(len(moved))", "half = reach * sd"),
    Bug("an interval of 90 %", "differences.py", "_LEVEL = 0.95", "_LEVEL = 0.9"),
    Bug("Tukey HSD for free over measures", "differences.py",
        "return [min(1.0, p * len(design.tested)) for p in raw]", "return list(raw)"),
    Bug("p-values of the other pair", "differences.py",
        "float(tables[m][place[run], place[base]])", "float(tables[m][place[base], place[base]])"),
    Bug("p-values are not corrected", "differences.py",
        "return _ALONE[design.correction](raw).tolist()", "return list(raw)"),
    Bug("the p-value alone decides", "differences.py",
        "if (corrected < ALPHA) != sure_by_interval:", "if False:"),
    Bug("wins and losses of the mirrored pair stay", "differences.py",
        "wins=self.losses,", "wins=self.wins,"),
    Bug("the interval of the mirrored pair stays", "differences.py",
        "low=-self.high,", "low=-self.low,"),
    Bug("pairs with the baseline only", "differences.py",
        "return [(run, against) for against, run in combinations([base, *rest], 2)]",
        "return [(name, base) for name in rest]"),
    Bug("the winner is not held against the others", "remarks.py",
        "near = set(indistinct(evaluations, design, best[0]))", "near = set()"),
    Bug("holes are never told", "remarks.py", "_HOLES = 0.05", "_HOLES = 2.0"),
    Bug("the best value of the transposed table", "comparison.py",
        "best = {(column, place) for place, column in best}", "best = set(best)"),
    Bug("queries of the first run are common to all", "comparison.py",
        "all(q in run.query_index for run in runs)", "q in runs[0].query_index"),
    Bug("evaluations of other queries are compared", "comparison.py",
        'for what in ("measures", "policies", "query_ids"):', 'for what in ("measures",):'),
    Bug("what is only shown moves p-values", "differences.py",
        "evaluation.per_query[:, [evaluation.measures.index(measure) for measure in tested]]",
        "evaluation.per_query"),
    Bug("what has no better side is better", "differences.py",
        'if measure.declaration.better == "neither":', "if False:"),
    # ---- the gate
    Bug("gate: Holm forgotten", "gating/decision.py",
        "corrected = stats.holm(raw).tolist()", "corrected = list(raw)"),
    Bug("gate: FAIL at 95 %", "gating/decision.py", "ALPHA_FAIL = 0.01", "ALPHA_FAIL = 0.05"),
    Bug("gate: a mean within the margin passes", "gating/decision.py",
        "if identical or bounds.not_inferior:", "if identical or bounds.mean > -bounds.margin:"),
    Bug("gate: the bound that is printed is not the corrected one", "gating/decision.py",
        "level = 1 - ALPHA_FAIL / max(1, len(gains) - steps[place])", "level = 1 - ALPHA_FAIL"),
    Bug("gate: queries for a chance of one half", "gating/decision.py",
        "_POWER_80 = 0.8416212335729143", "_POWER_80 = 0.0"),
    Bug("gate: queries for FAIL only", "gating/decision.py",
        "(bounds.mean + bounds.margin, bounds.level),", ""),
    Bug("gate: queries that went are not missed", "gating/paired.py",
        'if rules.queries == "same" and mine != theirs:',
        'if rules.queries == "same" and mine - theirs:'),
    Bug("gate: judgments of the first query only", "gating/paired.py",
        "other = [q for q in sorted(both) if", "other = [q for q in sorted(both)[:1] if"),
    Bug("gate: lower is never better", "gating/paired.py",
        "gains(apart(after, before), g.measure)", "apart(after, before)"),
    Bug("gate: jitter counts as a loss", "gating/paired.py",
        "losses=int((gain < -jitter).sum()),", "losses=int((gain < 0).sum()),"),
    Bug("gate: what lost its value is left out unseen", "gating/paired.py",
        "if lost > rules.max_failed * len(reference.queries):", "if False:"),
    Bug("gate: values of other queries", "gating/paired.py",
        "return [queries[row] for row in rows.tolist()]", "return list(queries[: len(rows)])"),
    Bug("gate: the margin named does not pass", "gating/paired.py",
        "margin = math.ceil(-n.lower * 10**digits + SAME) / 10**digits",
        "margin = math.floor(-n.lower * 10**digits) / 10**digits"),
    Bug("gate: depth of the cut forgotten", "gating/paired.py",
        "before, now = min(cut, stored.depth), min(cut, new.depth)",
        "before, now = stored.depth, new.depth"),
    Bug("gate: a floor turned round where lower is better", "gating/verdict.py",
        "short = mean > floor + SAME if lower else mean < floor - SAME",
        "short = mean < floor - SAME"),
    Bug("gate: the anchor is not held", "gating/verdict.py",
        'given["anchor"] = _stored(anchor)', "pass"),
    Bug("gate: as many empty rankings as allowed are too many", "gating/verdict.py",
        "if len(empty) > wanted.max_failed * len(new.queries):",
        "if len(empty) >= wanted.max_failed * len(new.queries):"),
    Bug("gate: a margin within the noise is taken", "gating/verdict.py",
        "gated.margin <= band", "gated.margin <= band / 2"),
    Bug("gate: the verdict is the best of all", "gating/verdict.py",
        "return max((check.verdict for check in self.checks), key=VERDICTS.index)",
        "return min((check.verdict for check in self.checks), key=VERDICTS.index)"),
    Bug("gate: a contract of rank r asks for r - 1", "gating/contracts.py",
        "if ranks.get(doc, most + 1) > most:", "if ranks.get(doc, most + 1) >= most:"),
    Bug("gate: forbidden only above k", "gating/contracts.py",
        "if ranks.get(doc, contract.k + 1) <= contract.k:",
        "if ranks.get(doc, contract.k + 1) < contract.k:"),
    Bug("gate: the noise of one mean, not of a difference", "gating/noise.py",
        "math.sqrt(2 * math.fsum(variances))", "math.sqrt(math.fsum(variances))"),
    Bug("gate: variance of all runs there are", "gating/noise.py",
        "values.var(axis=0, ddof=1)", "values.var(axis=0)"),
    Bug("gate: latency passes by the lower bound", "gating/latency.py",
        "if upper < limit:", "if lower < limit:"),
    Bug("gate: systems are timed on other draws", "gating/latency.py",
        "before, after = (np.quantile(column[rows], share, axis=1) for column in times)",
        "before, after = (np.quantile(column[rng.permuted(rows)], share, axis=1)"
        " for column in times)"),
    Bug("gate: grades are no part of the judgments", "gating/baseline.py",
        'digest.update(doc + b"\\0" + repr(grade).encode() + b"\\n")', "digest.update(doc)"),
    Bug("gate: an edited baseline is read", "gating/baseline.py",
        "if not whole:", "if False:"),
    Bug("gate: eleven annotations", "reports/gates.py",
        "shown = checks if len(checks) <= _MOST else checks[: _MOST - 1]",
        "shown = checks if len(checks) <= _MOST else checks[:_MOST]"),
    Bug("gate: the summary is cut in letters, not bytes", "reports/gates.py",
        "if len(whole) <= room:", "if len(text) <= room:"),
    # ---- the history
    Bug("history: values of other queries", "history/changes.py",
        "shared = [(row, rows[query]) for row, query", "shared = [(row, row) for row, query"),
    Bug("history: other judgments are compared", "history/changes.py",
        "if before.qrels != after.qrels:", "if False:"),
    Bug("history: before and after turned round", "history/changes.py",
        "found = described(sides[1], sides[0], own, _LEVEL)",
        "found = described(sides[0], sides[1], own, _LEVEL)"),
    Bug("history: all measures are tested", "history/changes.py",
        "        if design is None:\n", "        if True:\n"),
    Bug("history: weights stay in the means", "history/changes.py", "weights=None,", ""),
    Bug("history: a decline across a break", "history/trends.py",
        "begin = max((place for place, point in enumerate(points) if point.breaks), default=0)",
        "begin = 0"),
    Bug("history: the best is free to choose", "history/trends.py",
        "{best: 1 - _ALPHA / 2 / choices}", "{best: 1 - _ALPHA / 2}"),
    Bug("history: steps between are not corrected", "history/trends.py",
        "step.measure, 1 - _ALPHA / between", "step.measure, 1 - _ALPHA"),
    Bug("history: other queries are no break", "history/trends.py",
        "set(one.query_ids) != set(other.query_ids):", "False:"),
    Bug("history: undefined is what is NaN", "history/entries.py",
        "if not np.array_equal(evaluation.undefined, np.isnan(values)):", "if False:"),
    Bug("history: coverage is lost", "history/entries.py",
        "        coverage=entry.coverage,\n", ""),
    Bug("history: in the order of saving", "history/store.py",
        "asked.order_by(table.c.time, table.c.id)", "asked.order_by(table.c.id)"),
    Bug("history: a changed row is believed", "history/store.py",
        "if _seal(time, head) != seal:", "if False:"),
    Bug("history: grades of records are no part of their judgments", "history/store.py",
        "own = both[0] if both[0] == both[1] else", "own = both[0] if True else"),
    Bug("fingerprint: order of rows", "fingerprints.py",
        "rows = rows[table.docs.descending(rows, groups)]", "rows = np.arange(len(rows))"),
    Bug("fingerprint: a query without documents is none", "fingerprints.py",
        "[len(queries), len(table)],", "[len(table)],"),
)  # fmt: skip


def _copy(folder: Path) -> None:
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / part, folder / part)


def _run(bug: Bug | None) -> tuple[bool, str]:
    """Whether the tests pass with this bug, and the first that does not."""
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        folder = Path(name)
        _copy(folder)
        if bug is not None:
            path = folder / "src/rankgauge" / bug.file
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no"]
        tests = TESTS_OF.get(bug.file, TESTS) if bug else {*TESTS, *chain(*TESTS_OF.values())}
        command += ["-p", "no:cacheprovider", *sorted(tests)]
        try:
            done = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True,
                timeout=PATIENCE, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False, f"no end after {PATIENCE} s"
        if done.returncode == 0:
            return True, ""
        found = re.search(r"^(?:FAILED|ERROR) \S*?([^/\s]+\.py\S*)", done.stdout, re.MULTILINE)
        if found is None:
            # Not a failed test: the machinery itself. Nothing must pass for caught by mistake.
            raise SystemExit(f"pytest did not run:\n{done.stdout}\n{done.stderr}")
        return False, found[1]


def _stale(bugs: tuple[Bug, ...]) -> list[str]:
    """Bugs whose text does not stand in its file exactly once, or that change nothing."""
    said = []
    for bug in bugs:
        text = (ROOT / "src/rankgauge" / bug.file).read_text(encoding="utf-8")
        if text.count(bug.old) != 1 or bug.old == bug.new:
            said.append(f"{bug.name}: {text.count(bug.old)} times in {bug.file}: {bug.old!r}")
    return said


def main(words: list[str]) -> int:
    """Plant them all, print the table."""
    chosen = tuple(bug for bug in BUGS if all(word in bug.name for word in words))
    stale = _stale(BUGS)
    if stale:
        print("the code has moved on; mend these bugs:", *stale, sep="\n  ")
        return 1
    files = {bug.file for bug in BUGS}
    kernels = {f"kernels/{path.name}" for path in (ROOT / "src/rankgauge/kernels").glob("[!_]*.py")}
    if not words and not kernels <= files:
        print("no bug is planted in", *sorted(kernels - files))
        return 1
    began = time.monotonic()
    passed, first = _run(None)
    if not passed:
        print(f"the tests fail without any bug: {first}")
        return 1
    survived = 0
    width = max(len(bug.name) for bug in chosen)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for bug, (passed, first) in zip(chosen, pool.map(_run, chosen), strict=True):
            survived += passed
            print(f"{bug.name:<{width}}  {'SURVIVED' if passed else first}", flush=True)
    seconds = time.monotonic() - began
    print(
        f"{len(chosen)} bugs, {len(chosen) - survived} caught, {survived} survived, {seconds:.0f} s"
    )
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
