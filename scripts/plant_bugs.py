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
    "kernels/measure.py": (*TESTS, "tests/test_comparison.py"),
    "plots.py": ("tests/test_plots.py",),
    "render.py": ("tests/test_render.py", "tests/test_comparison.py"),
    "reports/evaluations.py": ("tests/reports/test_report_evaluations.py",),
    "reports/page.py": (
        "tests/reports/test_report_page.py",
        "tests/reports/test_report_sections.py",
    ),
    "reports/queries.py": ("tests/reports/test_report_page.py",),
    "reports/sections.py": ("tests/reports/test_report_sections.py",),
    "stats/arrays.py": ("tests/test_stats.py",),
    "stats/columns.py": ("tests/test_stats.py",),
    "stats/corrections.py": ("tests/test_stats.py",),
    "stats/randomised.py": ("tests/test_stats.py",),
    "stats/sizes.py": ("tests/test_stats.py",),
    **dict.fromkeys(
        (f"diagnosing/{name}.py" for name in (
            "bands", "causes", "cures", "diagnosis", "potential", "slices", "views", "wording",
        )), ("tests/diagnosing",),
    ),
    "rundiff.py": ("tests/test_rundiff.py",),
    "sidebyside.py": ("tests/test_rundiff.py",),
    "overlap.py": ("tests/test_overlap.py",),
    **dict.fromkeys(("fusion.py", "aligned.py", "sums.py"), ("tests/test_fusion.py",)),
    "tuning.py": ("tests/test_tuning.py",),
    "subsets.py": ("tests/test_subsets.py",),
}  # fmt: skip
AT_ONCE = 2
PATIENCE = 180


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
    Bug("baseline minus run", "kernels/measure.py",
        "found: Values = one - other", "found: Values = other - one"),
    Bug("what rounding sets apart is a difference", "kernels/measure.py",
        "return np.where(np.abs(found) <= _SAME, 0.0, found)", "return found"),
    Bug("undefined is 0 where it is left out", "kernels/measure.py",
        'if skip_undefined or self.declaration.undefined == "skip":\n            return values',
        "if skip_undefined:\n            return values"),
    Bug("a geometric mean is compared as a plain one", "kernels/measure.py",
        'if self.declaration.mean == "geometric":', 'if self.declaration.mean == "harmonic":'),
    Bug("differences of what the other leaves out", "differences.py",
        "return found[~np.isnan(found)]", "return np.nan_to_num(found, nan=0.0)"),
    Bug("draws in the order of the queries", "differences.py",
        "return np.sort(paired(self.named[run], self.named[base], measure))",
        "return paired(self.named[run], self.named[base], measure)"),
    Bug("joint draws in the order of the queries", "differences.py",
        "ordered: FloatArray = known[np.lexsort(known.T[::-1])]", "ordered: FloatArray = known"),
    Bug("columns of max-T sorted apart", "differences.py",
        "ordered: FloatArray = known[np.lexsort(known.T[::-1])]",
        "ordered: FloatArray = np.sort(known, axis=0)"),
    Bug("the seed comes from all that is shown", "differences.py",
        "np.sort(np.stack([_column(e, m) for m in tested], axis=1), axis=0)",
        "np.sort(e.per_query, axis=0)"),
    Bug("max-T over other queries", "differences.py",
        "if len({tuple(np.isnan(column)) for column in columns}) > 1:",
        "if len({int(np.isnan(column).sum()) for column in columns}) > 1:"),
    Bug("a measure without a better side has a better run", "differences.py",
        'if measure.declaration.better == "neither":', 'if measure.declaration.better == "none":'),
    Bug("a lower value is never better", "differences.py",
        'gains = -apart if measure.declaration.better == "lower" else apart', "gains = apart"),
    Bug("an interval of one standard deviation", "differences.py",
        "half = reach * sd / math.sqrt(len(apart))", "half = reach * sd"),
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
    Bug("marks of the transposed table stay where they were", "comparison.py",
        "marks = {(column, place): mark for (place, column), mark in marks.items()}", "pass"),
    Bug("marks from other pairs than those with the baseline", "comparison.py",
        "if d.verdict in _MARKS and d.baseline == self.baseline", "if d.verdict in _MARKS"),
    Bug("weights are left out without a word", "remarks.py",
        "if any(e.weights is not None for e in evaluations):", "if False:"),
    Bug("few changes are no warning", "remarks.py", "_FEW_CHANGES = 6", "_FEW_CHANGES = 0"),
    Bug("shallow rankings are no warning", "remarks.py",
        "if bound and most < int(bound)]", "if bound and most > int(bound)]"),
    Bug("evaluations of other queries are compared", "comparison.py",
        'for what in ("measures", "policies", "query_ids"):', 'for what in ("measures",):'),
    # ---- statistics
    Bug("p of b / draws", "stats/randomised.py",
        "p[sampled] = (reaching + 1) / (draws + 1)", "p[sampled] = reaching / draws"),
    Bug("ties of sums do not reach", "stats/randomised.py",
        "edge = abs(float(total(whole))) - float(slack(whole))",
        "edge = abs(float(total(whole))) + float(slack(whole))"),
    Bug("signs of half the bits", "stats/randomised.py", "sums *= 2\n", "pass\n"),
    Bug("Tukey: permuted over queries", "stats/randomised.py",
        "rng.permuted(np.broadcast_to(whole, (count, *whole.shape)), axis=2)",
        "rng.permuted(np.broadcast_to(whole, (count, *whole.shape)), axis=1)"),
    Bug("max-T: not studentised", "stats/randomised.py",
        "norm = np.sqrt(total(whole**2))", "norm = np.ones(whole.shape[1])"),
    Bug("Holm: no running maximum", "stats/corrections.py",
        "np.minimum(1.0, np.maximum.accumulate(steps))", "np.minimum(1.0, steps)"),
    Bug("Holm: factors the wrong way round", "stats/corrections.py",
        "steps = given[order] * np.arange(len(given), 0, -1)\n    result",
        "steps = given[order] * np.arange(1, len(given) + 1)\n    result"),
    Bug("Benjamini-Hochberg: no running minimum", "stats/corrections.py",
        "np.minimum(1.0, np.minimum.accumulate(steps))", "np.minimum(1.0, steps)"),
    Bug("t with df = Q", "stats/columns.py",
        "beyond(t * t, len(column) - 1)", "beyond(t * t, len(column))"),
    Bug("standard deviation over Q", "stats/arrays.py",
        "for value in scaled) / (len(scaled) - 1)", "for value in scaled) / len(scaled)"),
    Bug("Wilcoxon: zeros are ranked", "stats/columns.py",
        "kept = column[np.abs(column) > near]", "kept = column[np.abs(column) > -1]"),
    Bug("Wilcoxon: variance without ties", "stats/columns.py", "/ 24 - ties / 48", "/ 24"),
    Bug("BCa without acceleration", "stats/columns.py",
        "bias + z / (1 - skew * z)", "bias + z"),
    Bug("non-inferiority by the other side", "stats/columns.py",
        "return self.lower > -self.margin", "return self.lower > self.margin"),
    Bug("power by the normal quantile", "stats/sizes.py",
        "critical = student_t_quantile(1 - alpha / 2, queries - 1)",
        "critical = _NORMAL.inv_cdf(1 - alpha / 2)"),
    Bug("power of one side", "stats/sizes.py",
        "1 - alpha / 2, queries - 1", "1 - alpha, queries - 1"),
    # ---- plots and reports
    Bug("plot: better and worse the wrong way", "plots.py", "words[::sign]", "words[::-sign]"),
    Bug("plot: steps are not sorted", "plots.py",
        "tuple(sorted(gains, reverse=True))", "tuple(gains)"),
    Bug("plot: an interval of a geometric mean", "plots.py",
        'measure.declaration.mean != "arithmetic" or run',
        'measure.declaration.mean == "sum" or run'),
    Bug("plot: values of undefined queries are 0", "plots.py",
        "return [gain for gain in apart.tolist() if not math.isnan(gain)]",
        "return [0.0 if math.isnan(gain) else gain for gain in apart.tolist()]"),
    Bug("plot: first ranks by the lower end only", "plots.py",
        "sum(low <= rank <= high for rank in ranks)", "sum(low <= rank for rank in ranks)"),
    Bug("star: not of ties", "reports/evaluations.py", "return measure.best(values) if several",
        "return measure.best(values)[:1] if several"),
    Bug("star: of one run alone", "reports/evaluations.py",
        "sum(not math.isnan(value) for value in values) > 1",
        "sum(not math.isnan(value) for value in values) > 0"),
    Bug("star: in every table", "render.py", "_STAR if self.starred and place", "_STAR if place"),
    Bug("marks push decimals out of line", "render.py",
        "shown = [text.rjust(wide) for text in shown]", "shown = list(shown)"),
    Bug("report: losses are gains", "reports/queries.py",
        "apart = [self.sign * (v - value) for v in others if not math.isnan(v - value)]",
        "apart = [self.sign * (value - v) for v in others if not math.isnan(v - value)]"),
    Bug("report: hard where one run is below its mean", "reports/queries.py",
        "if known and max(gains) < -_SAME:", "if known and min(gains) < -_SAME:"),
    Bug("report: grade -1 is judged", "reports/queries.py",
        "grade is None or grade < 0 else grade", "grade is None else grade"),
    Bug("report: units cut off", "reports/queries.py",
        'int(f"{value:.{digits}f}".replace(".", ""))', "int(value * 10**digits)"),
    Bug("report: curves by the default ties", "reports/page.py",
        "ties=e.policies.ties,\n                queries", "queries"),
    Bug("report: curves of all queries", "reports/page.py",
        "queries=[ids[query] for query in e.query_ids],\n", "\n"),
    Bug("report: the first run is diagnosed", "reports/page.py",
        "wanted = names[ahead[0] if ahead else 0]", "wanted = names[0]"),
    Bug("report: all queries are diagnosed", "reports/page.py",
        "self.truth if same else keep_queries(self.truth, one.query_ids)", "self.truth"),
    Bug("section: a break is a change", "reports/sections.py", "if point.breaks:", "if False:"),

    # ---- diagnosis
    Bug("a mean on the bound is below it", "diagnosing/bands.py",
        "mean >= bound - _ROUNDING", "mean > bound + _ROUNDING"),
    Bug("unjudged: more than half", "diagnosing/causes.py",
        "len(bare) >= _HALF * len(top)", "len(bare) > _HALF * len(top)"),
    Bug("a gap where nothing is asked", "diagnosing/causes.py",
        "if not asked or not self.texts.words(doc)", "if not self.texts.words(doc)"),
    Bug("ignored, though others hold as many terms", "diagnosing/causes.py",
        "if most > _NEARLY_ALL * held:", "if most > held:"),
    Bug("ignored: looks at whole rankings", "diagnosing/causes.py",
        "above = [d for d in view.docs[: self.k] if", "above = [d for d in view.docs if"),
    Bug("the primary cause is that of most missed documents", "diagnosing/causes.py",
        "best = [doc for doc in missed if doc.grade == missed[0].grade]", "best = list(missed)"),
    Bug("twins are told from both sides", "diagnosing/causes.py",
        "(grade is None or grade < view.grades[doc])", "grade != view.grades[doc]"),
    Bug("Fisher's tail without what was seen", "diagnosing/causes.py",
        "for here in range(missed, min(", "for here in range(missed + 1, min("),
    Bug("noise and gaps change places", "diagnosing/cures.py",
        "high = (p.level in _HIGH, r.level in _HIGH)",
        "high = (r.level in _HIGH, p.level in _HIGH)"),
    Bug("a smaller k that lifts nothing", "diagnosing/cures.py",
        "row.k < self.k and row.precision > here.precision", "row.k < self.k"),
    Bug("a threshold that lifts nothing", "diagnosing/cures.py",
        "best.precision > whole.precision + _NOTHING", "best is not whole"),
    Bug("recall at twice k", "diagnosing/cures.py", "row.k >= 4 * self.k", "row.k >= 2 * self.k"),
    Bug("reranked from any depth", "diagnosing/cures.py",
        "if ranks[query][doc] <= self.depth", "if ranks[query][doc]"),
    Bug("a query without a loss is left out though it misses", "diagnosing/diagnosis.py",
        "- _SAME or view.missed(examiner.k)", "- _SAME"),
    Bug("undefined values are worst", "diagnosing/diagnosis.py",
        "math.isnan(one.value), 0.0 if", "0.0, 0.0 if"),
    Bug("lifted to the very top", "diagnosing/potential.py",
        "view.worth(waiting[-1]) > view.worth(doc)", "view.worth(waiting[-1]) > 0"),
    Bug("a score on the threshold is dropped", "diagnosing/potential.py",
        "if own >= score", "if own > score"),
    Bug("thresholds look below k", "diagnosing/potential.py",
        "zip(view.docs[: self.k], view.scores[: self.k], strict=True)",
        "zip(view.docs, view.scores, strict=True)"),
    Bug("an empty answer has precision 0", "diagnosing/potential.py",
        'undefined="skip"', 'undefined="zero"'),
    Bug("the highest of equal thresholds", "diagnosing/potential.py",
        "key=lambda row: (row.f, -row.score)", "key=lambda row: (row.f, row.score)"),
    Bug("what is below the reranker is lost", "diagnosing/potential.py",
        "[*best_first(view, view.docs[:depth]), *view.docs[depth:]]",
        "best_first(view, view.docs[:depth])"),
    Bug("one of several values is not enough", "diagnosing/potential.py",
        "own.isdisjoint(wanted)", "own != wanted"),
    Bug("lost: relevant at any depth", "diagnosing/potential.py",
        "view.hits(self.k) > 0 for view in empty", "view.hits(10**6) > 0 for view in empty"),
    Bug("a tenth that was added up is below itself", "diagnosing/slices.py",
        "math.floor(value * _BINS + 1e-9)", "math.floor(value * _BINS)"),
    Bug("nothing at all: only where nothing was retrieved", "diagnosing/slices.py",
        "not view.hits(len(view.docs)) for view in missing", "not view.docs for view in missing"),
    Bug("an open place is not ill spent", "diagnosing/views.py",
        "if len(top) == k else", "if top else"),
    Bug("missed among equals", "diagnosing/views.py",
        "self.grades[doc] > least", "self.grades[doc] >= least"),
    Bug("pooled is judged", "diagnosing/views.py", "if grade >= 0}", "if True}"),
    Bug("the best ranking of relevant documents only", "diagnosing/views.py",
        "if view.grades[d] > 0)", "if view.grades[d] >= view.rel)"),
    Bug("containment for resemblance", "diagnosing/wording.py",
        "return both / (len(left) + len(right) - both)",
        "return both / min(len(left), len(right))"),
    Bug("fences within a factor of two", "diagnosing/wording.py",
        "stretch = max((high / low)", "stretch = min((high / low)"),
    # ---- difference of two runs
    Bug("diff: A minus B", "rundiff.py", "changes(b, a, measured)", "changes(a, b, measured)"),
    Bug("diff: equal changes from the last", "rundiff.py",
        "key=lambda row: (-abs(changes[row]), ids[row])",
        "key=lambda row: (-abs(changes[row]), -row)"),
    Bug("diff: the last rank shown is not shown", "rundiff.py",
        "at.other_rank > depth", "at.other_rank >= depth"),
    Bug("diff: the share of what is shown in itself", "rundiff.py",
        "total = math.fsum(amount for amount in amounts.tolist() if amount > 0)",
        "total = math.fsum(amount for amount in amounts[list(rows)].tolist() if amount > 0)"),
    Bug("diff: lower is a loss", "rundiff.py",
        'return -changes if measure.declaration.better == "lower" else changes', "return changes"),
    Bug("diff: ties by id, whatever is asked", "rundiff.py",
        'ranked(Run.of(run), ties="input") for', 'ranked(Run.of(run), ties="trec") for'),
    Bug("diff: relevance level forgotten", "rundiff.py",
        "return float(measure.rel) if has else 1.0", "return 1.0 if has else 1.0"),
    Bug("diff: up is down", "sidebyside.py",
        'return "up" if new < old else "down"', 'return "up" if new > old else "down"'),
    Bug("diff: the other rank is its own", "sidebyside.py",
        "other_rank=a.get(doc) if of_b else b.get(doc)",
        "other_rank=b.get(doc) if of_b else a.get(doc)"),
    Bug("RBO: seen from the better rank on", "overlap.py",
        "since = np.maximum(meeting.rank_a", "since = np.minimum(meeting.rank_a"),
    Bug("RBO: tail over the longer ranking", "overlap.py",
        "- powers[short] - short * (shares", "- powers[short] - long * (shares"),
    Bug("RBO: agreement of the longer ranking alone", "overlap.py",
        "last = (seen - seen_short) / np.maximum(long, 1) + reach",
        "last = seen / np.maximum(long, 1)"),
    Bug("RBO: residual as if nothing was common", "overlap.py",
        "full = long + short - seen", "full = long + short"),
    Bug("RBO: share of the shorter ranking", "overlap.py",
        "np.minimum(np.maximum(meeting.length_a", "np.minimum(np.minimum(meeting.length_a"),
    Bug("RBO: two empty rankings differ", "overlap.py",
        "ext[long == 0] = np.nan", "ext[long == 0] = 0.0"),
    Bug("RBO: a beginning is the whole", "overlap.py",
        "return (alike == shown_a) & (alike == shown_b)", "return alike == shown_a"),
    # ---- fusion
    Bug("rrf: ranks from 0", "fusion.py",
        "ranks = task.block.rank + float(task.how.k or 0)",
        "ranks = task.block.rank - 1 + float(task.how.k or 0)"),
    Bug("isr: not times the runs", "fusion.py",
        "found.astype(np.float64) * task.count[:, None]", "found.astype(np.float64)"),
    Bug("rbc: exponent of the rank", "fusion.py",
        "phi**rank for rank in range(deepest)", "phi**rank for rank in range(1, deepest + 1)"),
    Bug("borda: the rest is shared too low", "fusion.py",
        "(sizes - retrieved + 1) / 2", "(sizes - retrieved) / 2"),
    Bug("borda: a run without the query votes", "fusion.py",
        "np.where(retrieved > 0, points, 0.0)", "points"),
    Bug("condorcet: losses do not count", "fusion.py",
        "np.count_nonzero(balance > 0, axis=1) - np.count_nonzero(balance < 0, axis=1)",
        "np.count_nonzero(balance > 0, axis=1)"),
    Bug("z-score: n - 1", "fusion.py",
        "np.sqrt(squares / np.maximum(sizes, 1))", "np.sqrt(squares / np.maximum(sizes - 1, 1))"),
    Bug("min-max: equal scores are 0", "fusion.py",
        "return np.where(flat, 1.0, shares)", "return np.where(flat, 0.0, shares)"),
    Bug("combmed: the lower of two", "fusion.py",
        "ordered[rows, count // 2]) / 2", "ordered[rows, (count - 1) // 2]) / 2"),
    Bug("combanz: mean over all runs", "fusion.py",
        "total(task.scores) / task.count", "total(task.scores) / task.scores.shape[1]"),
    Bug("a run of weight 0 takes part", "fusion.py",
        "np.flatnonzero(weights > 0)", "np.flatnonzero(weights >= 0)"),
    Bug("fused ranks from 0", "aligned.py",
        "self.starts[first:stop, runs][query] + 1, 0)", "self.starts[first:stop, runs][query], 0)"),
    Bug("ids of one hash are one document", "aligned.py",
        "if docs.same(place[order[equal + 1]], docs, place[order[equal]]).all():", "if True:"),
    Bug("sums keep nothing of what rounding loses", "sums.py",
        "exact: FloatArray = result + rest", "exact: FloatArray = result"),
    Bug("products keep nothing of what rounding loses", "sums.py",
        "((a * c - result) + a * d + b * c) + b * d", "0 * (a + b + c + d)"),
    Bug("tuned on the queries it is used for", "tuning.py",
        "if place % folds != fold]", "if place % folds != -1]"),
    Bug("tuned for the highest error", "tuning.py", "-m if lower else m for m", "m for m"),
    Bug("unjudged queries get the first choice", "tuning.py",
        "overall = self.candidates[self.best(everything)]", "overall = self.candidates[0]"),
    Bug("the untuned mean is the best one", "tuning.py",
        "return self.mean(0, [shown", "return self.mean(self.best(self.rows), [shown"),
    Bug("training queries are tested", "tuning.py",
        "others = [query for query in judged if query not in given]",
        "others = [query for query in judged if query not in given or len(given) < len(judged)]"),
    Bug("the seed draws nothing", "subsets.py", 'b"%d:" % seed + query', "query"),
    Bug("drawn from any where all are asked", "subsets.py",
        'if among == "intersection" else set.union(*sets)',
        'if among == "union" else set.union(*sets)'),
    Bug("cut keeps the first of two unasked", "subsets.py",
        "whole.without_repeats(duplicates)", 'whole.without_repeats("first")'),
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
