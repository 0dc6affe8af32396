"""Engines in fresh processes: times that count, and engines that are left out."""

import sys
from dataclasses import replace

import pytest
from engines import Engine
from processes import Cost, EngineError, Task, measure_all, median, process
from run import GOALS, PEAKS, Plan, engine_table
from workloads import Work

WORK = Work(3, 10, 4)
TASK = Task(WORK, "CLI", ("AP", "RR"))


class Program(Engine):
    """A program that prints a given output."""

    name = "program"
    forms = ("CLI",)

    def __init__(self, code, *, large=True):
        self.code, self.large = code, large

    def command(self, qrels, run, measures):
        return [sys.executable, "-c", self.code]

    def parse(self, output):
        return {"AP": float(output)}


def test_a_failing_program_is_left_out_with_its_last_message(tmp_path):
    broken = Program("raise SystemExit('no such measure')")
    results = measure_all(TASK, [broken], 2, tmp_path)
    assert [*results.took] == ["rankgauge"]
    assert results.left_out == {"program": "failed: no such measure"}


def test_a_program_with_other_numbers_is_left_out(tmp_path):
    results = measure_all(TASK, [Program("print(0.9999)")], 1, tmp_path)
    assert [*results.took] == ["rankgauge"]
    assert results.left_out["program"].startswith("has AP = 0.999900, rankgauge 0.")


def test_a_program_that_agrees_has_a_time(tmp_path):
    ours = measure_all(TASK, [], 1, tmp_path).took["rankgauge"].means
    results = measure_all(TASK, [Program(f"print({ours['AP']!r})")], 1, tmp_path)
    assert results.left_out == {}
    assert results.took["program"].cpu > 0


def test_a_peer_for_small_workloads_skips_large_ones(tmp_path):
    large = replace(TASK, work=replace(WORK, large=True))
    results = measure_all(large, [Program("", large=False)], 1, tmp_path)
    assert results.left_out == {"program": "was not run with millions of rows"}


def test_a_failure_of_rankgauge_is_an_error(tmp_path):
    with pytest.raises(EngineError, match=r"^rankgauge, CLI, 3 × 10: "):
        measure_all(replace(TASK, measures=("nDCG@0",)), [], 1, tmp_path)


def test_a_table_lists_engines_left_out_and_goals_missed(tmp_path):
    text = engine_table(Plan((Program("exit(3)"),), tmp_path, 1), [TASK], "s")
    assert "| 3 × 10, CLI | rankgauge (2) |" in text
    assert "- 3 × 10, CLI: program failed: no output." in text


def test_large_workloads_run_only_on_request(tmp_path):
    plan = Plan((), tmp_path, 1)
    assert plan.measure(replace(TASK, work=replace(WORK, large=True))) is None


def test_the_median_is_taken_of_each_number():
    some = [Cost(3, 1, 5, {"AP": 1.0}), Cost(1, 2, 4, {"AP": 1.0}), Cost(2, 3, 6, {"AP": 1.0})]
    assert median(some) == Cost(2, 2, 5, {"AP": 1.0})


def test_a_process_reads_its_input_from_a_pipe(tmp_path):
    text = tmp_path / "text"
    text.write_text("x" * 300_000)
    code = "import sys; print(len(sys.stdin.read()))"
    assert process([sys.executable, "-c", code], text, lambda text: {"n": int(text)}).means == ({"n": 300_000})


def test_memory_is_that_of_the_process_and_not_of_the_one_that_started_it():
    kept = bytearray(200 << 20)
    took = process([sys.executable, "-c", "pass"])
    assert took.peak < 60
    assert len(kept) == 200 << 20
    assert process([sys.executable, "-c", "x = bytearray(200 << 20)"]).peak > 200


def test_goals_are_those_of_selected_questions():
    from run import DICTS, FILES, FRAMES

    asked = {(task.work, task.form) for task in (*FILES, *DICTS, *FRAMES)}
    assert {*GOALS} <= asked
    assert {*PEAKS} <= asked
