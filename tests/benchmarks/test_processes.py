"""Engines asked in fresh processes: what counts, and what is left out aloud."""

import sys
from dataclasses import replace

import pytest
from engines import Engine
from processes import Question, Refused, Took, ask_all, median, process
from run import GOALS, ROOM, Plan, beside
from workloads import Work

WORK = Work(3, 10, 4)
ASKED = Question(WORK, "CLI", ("AP", "RR"))


class Program(Engine):
    """A program that prints what it is told to."""

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
    answers = ask_all(ASKED, [broken], 2, tmp_path)
    assert [*answers.took] == ["rankgauge"]
    assert answers.left_out == {"program": "stopped: no such measure"}


def test_a_program_with_other_numbers_is_left_out(tmp_path):
    answers = ask_all(ASKED, [Program("print(0.9999)")], 1, tmp_path)
    assert [*answers.took] == ["rankgauge"]
    assert answers.left_out["program"].startswith("says AP = 0.999900, rankgauge says 0.")


def test_a_program_that_agrees_has_a_time(tmp_path):
    ours = ask_all(ASKED, [], 1, tmp_path).took["rankgauge"].means
    answers = ask_all(ASKED, [Program(f"print({ours['AP']!r})")], 1, tmp_path)
    assert answers.left_out == {}
    assert answers.took["program"].cpu > 0


def test_a_peer_for_small_workloads_skips_large_ones(tmp_path):
    large = replace(ASKED, work=replace(WORK, large=True))
    answers = ask_all(large, [Program("", large=False)], 1, tmp_path)
    assert answers.left_out == {"program": "was not run with millions of rows"}


def test_ours_must_not_fail(tmp_path):
    with pytest.raises(Refused, match=r"^rankgauge, CLI, 3 × 10: "):
        ask_all(replace(ASKED, measures=("nDCG@0",)), [], 1, tmp_path)


def test_a_table_says_what_is_left_out_and_which_goals_are_missed(tmp_path):
    said = beside(Plan((Program("exit(3)"),), tmp_path, 1), [ASKED], "s")
    assert "| 3 × 10, CLI | rankgauge (2) |" in said
    assert "- 3 × 10, CLI: program stopped: it says nothing." in said


def test_large_workloads_run_only_on_request(tmp_path):
    plan = Plan((), tmp_path, 1)
    assert plan.ask(replace(ASKED, work=replace(WORK, large=True))) is None


def test_the_median_is_taken_of_each_number():
    some = [Took(3, 1, 5, {"AP": 1.0}), Took(1, 2, 4, {"AP": 1.0}), Took(2, 3, 6, {"AP": 1.0})]
    assert median(some) == Took(2, 2, 5, {"AP": 1.0})


def test_a_process_reads_its_input_from_a_pipe(tmp_path):
    text = tmp_path / "text"
    text.write_text("x" * 300_000)
    code = "import sys; print(len(sys.stdin.read()))"
    assert process([sys.executable, "-c", code], text, lambda said: {"n": int(said)}).means == (
        {"n": 300_000}
    )


def test_memory_is_that_of_the_process_and_not_of_the_one_that_started_it():
    kept = bytearray(200 << 20)
    took = process([sys.executable, "-c", "pass"])
    assert took.peak < 60
    assert len(kept) == 200 << 20
    assert process([sys.executable, "-c", "x = bytearray(200 << 20)"]).peak > 200


def test_goals_are_those_of_selected_questions():
    from run import DICTS, FILES, FRAMES

    asked = {(question.work, question.form) for question in (*FILES, *DICTS, *FRAMES)}
    assert {*GOALS} <= asked
    assert {*ROOM} <= asked
