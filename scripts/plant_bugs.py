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
from itertools import chain
from pathlib import Path

from planted import BUGS, Bug

ROOT = Path(__file__).resolve().parent.parent
# The quick part: loops, pytrec_eval and the laws, then the join.
TESTS = (
    "tests/kernels/test_measures.py",
    "tests/kernels/test_pytrec_eval.py",
    "tests/test_judged.py",
    "tests/test_join.py",
)
# What stands above the measures has tests of its own.
BENCHMARKS = (
    "tests/bench/test_benchmark.py",
    "tests/bench/test_store.py",
    "tests/bench/test_compared.py",
)
DIVERSITY = ("tests/kernels/test_diversity.py", "tests/test_subtopics.py")
TESTS_OF = {
    **dict.fromkeys(
        ("kernels/diversity.py", "subtopics.py", "formats/wide.py"), DIVERSITY,
    ),
    **dict.fromkeys(
        ("kernels/preferring.py", "preferences.py"),
        ("tests/kernels/test_preferring.py", "tests/test_preferences.py"),
    ),
    **dict.fromkeys(
        ("kernels/inferred.py", "sampled.py"), ("tests/kernels/test_inferred.py",),
    ),
    "comparison.py": ("tests/test_comparison.py",),
    "differences.py": ("tests/test_comparison.py",),
    "remarks.py": ("tests/test_comparison.py",),
    "kernels/measure.py": (
        *TESTS, "tests/test_comparison.py", "tests/kernels/test_dialects.py",
    ),
    **dict.fromkeys(
        ("kernels/dialects.py", "kernels/spellings.py"), ("tests/kernels/test_dialects.py",)
    ),
    "join.py": (*TESTS, "tests/test_unjudged.py", "tests/checking/test_measuring.py"),
    "unjudged.py": ("tests/test_unjudged.py",),
    "pooling.py": ("tests/test_pooling.py",),
    "kernels/orders.py": (*TESTS, "tests/kernels/test_orders.py"),
    "kernels/readers.py": (
        *TESTS, "tests/kernels/test_cwl_eval.py", "tests/kernels/test_expected.py",
        "tests/test_tied.py",
    ),
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
    **dict.fromkeys(
        (
            *(f"profiles/{name}.py" for name in ("benchmarks", "steps", "trec")),
            "profiled.py",
        ), ("tests/profiles", "tests/test_profiled.py", "tests/tools", "tests/test_evaluation.py"),
    ),
    "drawing.py": ("tests/test_drawing.py",),
    "judged.py": (*TESTS, "tests/kernels/test_expected.py"),
    "kernels/expected.py": ("tests/kernels/test_expected.py",),
    **dict.fromkeys(
        (f"explaining/{name}.py" for name in (
            "binary", "graded", "listing", "order", "readers", "tied", "working",
        )),
        ("tests/explaining/test_working.py",),
    ),
    "explaining/given.py": ("tests/explaining/test_given.py",),
    "explaining/reconciliation.py": (
        "tests/explaining/test_reconciliation.py",
        "tests/explaining/test_reproduction.py",
    ),
    "explaining/reproduction.py": ("tests/explaining/test_reproduction.py",),
    "reports/reconciliations.py": ("tests/explaining/test_reconciliation.py",),
    "rundiff.py": ("tests/test_rundiff.py",),
    "sidebyside.py": ("tests/test_rundiff.py",),
    "tied.py": ("tests/test_tied.py",),
    "overlap.py": ("tests/test_overlap.py",),
    **dict.fromkeys(("fusion.py", "aligned.py", "sums.py"), ("tests/test_fusion.py",)),
    "tuning.py": ("tests/test_tuning.py",),
    "subsets.py": ("tests/test_subsets.py",),
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
    "fingerprints.py": ("tests/test_fingerprints.py", "tests/test_subtopics.py"),
    "reports/gates.py": ("tests/reports/test_report_gates.py",),
    "retriever.py": ("tests/test_retriever.py", *BENCHMARKS),
    **{
        f"checking/{name}.py": (f"tests/checking/test_{test}.py",)
        for name, test in (
            ("judgments", "judgments"),
            ("pairs", "pairs"),
            ("reading", "reading"),
            ("runs", "runs"),
            ("salvage", "reading"),
            ("survey", "runs"),
        )
    },
    "input_checks.py": ("tests/test_input_checks.py",),
    "spelling.py": ("tests/checking/test_pairs.py", "tests/test_spelling.py"),
    "checking/measuring.py": tuple(
        f"tests/checking/test_{name}.py" for name in ("measuring", "pairs", "runs")
    ),
    "bench/benchmark.py": BENCHMARKS,
    "bench/compared.py": BENCHMARKS,
    "bench/exploring.py": ("tests/bench/test_exploring.py",),
    "bench/identity.py": (*BENCHMARKS, "tests/bench/test_identity.py"),
    "bench/journal.py": ("tests/bench/test_journal.py", *BENCHMARKS),
    "bench/limits.py": ("tests/bench/test_running.py",),
    "bench/metadata.py": BENCHMARKS,
    "bench/outcome.py": BENCHMARKS,
    "bench/pareto.py": ("tests/bench/test_pareto.py",),
    "bench/plan.py": ("tests/bench/test_plan.py",),
    "bench/planned.py": ("tests/bench/test_plan.py",),
    "bench/running.py": ("tests/bench/test_running.py",),
    "bench/spending.py": BENCHMARKS,
    "bench/timing.py": ("tests/bench/test_latency.py",),
    "bench/tutorial.py": ("tests/bench/test_tutorial_benchmark.py",),
    "bench/varied.py": ("tests/bench/test_varied.py", "tests/bench/test_varied_today.py"),
    **dict.fromkeys(
        ("formats/decimals.py", "formats/pieces.py", "formats/quick.py"),
        (
            "tests/formats/test_quick.py", "tests/test_streamed.py",
            "tests/checking/test_reading.py",
        ),
    ),
    "formats/lines.py": (
        "tests/formats/test_lines.py",
        "tests/formats/test_packing.py",
        "tests/formats/test_quick.py",
        "tests/test_streamed.py",
    ),
    "formats/packing.py": ("tests/formats/test_packing.py", "tests/formats/test_archives.py"),
    "formats/archives.py": ("tests/formats/test_archives.py", "tests/loading/test_folders.py"),
    "formats/judgments.py": ("tests/formats/test_archives.py", "tests/loading/test_folders.py"),
    "formats/columnar.py": ("tests/formats/test_columnar.py",),
    **dict.fromkeys(
        (f"cli/{name}.py" for name in ("evaluate", "fuse", "main", "progress")),
        ("tests/test_startup.py",),
    ),
    "evaluation.py": (
        "tests/test_profiled.py", "tests/test_streamed.py", "tests/test_startup.py",
    ),
    "formats/files.py": (
        "tests/formats/test_files.py",
        "tests/formats/test_thirds.py",
        "tests/test_streamed.py",
    ),
    "formats/thirds.py": ("tests/formats/test_thirds.py",),
    "formats/tables.py": ("tests/formats/test_columns.py", "tests/formats/test_tables.py"),
    "formats/shapes.py": ("tests/formats/test_shapes.py",),
    "formats/nested.py": ("tests/formats/test_nested.py",),
    "formats/lookalikes.py": ("tests/test_bad_input.py",),
    "formats/classic.py": ("tests/formats/test_classic.py",),
    "formats/naming.py": ("tests/formats/test_files.py",),
    "formats/writing.py": ("tests/formats/test_files.py", "tests/formats/test_writing.py"),
    **dict.fromkeys(
        ("formats/columnwriting.py", "formats/exchange.py", "formats/layout.py", "formats/trec.py"),
        (
            "tests/formats/test_writing.py", "tests/formats/test_tables.py",
            "tests/formats/test_columns.py", "tests/formats/test_thirds.py",
            "tests/formats/test_trec.py", "tests/checking/test_reading.py",
            "tests/checking/test_runs.py",
        ),
    ),
    **dict.fromkeys(
        (
            "conversion.py", "formats/beir.py", "formats/kinds.py", "formats/textwriting.py",
            "formats/unread.py",
        ), ("tests/test_conversion.py", "tests/test_conversion_texts.py"),
    ),
    "formats/memory.py": ("tests/formats/test_memory.py",),
    "table.py": ("tests/test_table.py", "tests/test_join.py"),
    "formats/arrow.py": ("tests/formats/test_arrow.py",),
    "ids.py": (*TESTS, "tests/test_ids.py"),
    "gather.py": (
        "tests/test_streamed.py", "tests/test_notes.py", "tests/test_subtopics.py",
        "tests/test_unjudged.py",
    ),
    "mapped.py": ("tests/test_mapped.py", "tests/test_notes.py"),
    "notes.py": ("tests/test_notes.py",),
    "scanning.py": ("tests/test_inspecting.py", "tests/checking/test_check_texts.py"),
    "checking/texts.py": ("tests/checking/test_check_texts.py",),
    "checking/copying.py": ("tests/checking/test_fixes.py",),
    "checking/fixes.py": ("tests/checking/test_fixes.py",),
    "checking/result.py": ("tests/reports/test_report_checks.py",),
    "reports/annotations.py": (
        "tests/reports/test_report_checks.py",
        "tests/reports/test_report_gates.py",
    ),
    "reports/checks.py": ("tests/reports/test_report_checks.py",),
    "model.py": (*TESTS, "tests/test_mapped.py"),
    "chunking.py": ("tests/test_chunking.py",),
    "spans.py": ("tests/test_spans.py",),
    "loading/folders.py": ("tests/loading/test_folders.py",),
    "formats/places.py": ("tests/loading/test_folders.py",),
    "loading/plain.py": ("tests/loading/test_plain.py",),
    "loading/questions.py": ("tests/loading/test_plain.py",),
    "http_client.py": ("tests/test_http_client.py",),
    "redaction.py": ("tests/test_redaction.py",),
    "retrievers/deeper.py": (
        "tests/retrievers/test_chunked.py",
        "tests/retrievers/test_filtered.py",
    ),
    **{
        f"retrievers/{name}.py": (f"tests/retrievers/test_{name}.py",)
        for name in (
            "bm25",
            "bounds",
            "chunked",
            "dense",
            "elasticsearch",
            "embeddings",
            "encoders",
            "filtered",
            "http",
            "hybrid",
            "rerank",
            "saved",
            "stores",
        )
    },
}  # fmt: skip
AT_ONCE = 2
PATIENCE = 400


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
        # Without a bug all of them run.
        patience = PATIENCE if bug else 4 * PATIENCE
        try:
            done = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True,
                timeout=patience, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False, f"no end after {patience} s"
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
