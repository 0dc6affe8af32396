"""Cost of internal stages, release by release."""

import pytest
from stages import FIELDS, HISTORY, STAGES, STARTS, available_stages, compare, in_process, read_history, record


def row(stage, loads=1.0, peak=10.0, version="1"):
    numbers = {"cpu_ms": "5.0", "loads": str(loads), "peak_mib": str(peak)}
    known = dict.fromkeys(FIELDS, "x") | {"version": version, "stage": stage}
    return known | numbers


def test_a_stage_slower_than_in_the_last_release_is_reported():
    text = compare([row("join", loads=1.3), row("means", loads=1.2)], [row("join"), row("means")])
    assert "| join | 5.00 | 10.0 | 1.30 | **1.30** | 1.00 |" in text
    assert "| means | 5.00 | 10.0 | 1.20 | 1.20 | 1.00 |" in text
    assert text.endswith("Ratios above 1.25: join (**1.30**).")


def test_more_memory_is_reported_above_a_minimum():
    now = [row("join", peak=20.0), row("means", peak=2.0)]
    text = compare(now, [row("join", peak=10.0), row("means", peak=0.1)])
    assert "| join | 5.00 | 20.0 | 1.00 | 1.00 | **2.00** |" in text
    assert "| means | 5.00 | 2.00 | 1.00 | 1.00 | 1.00 |" in text


def test_the_last_release_counts_and_a_new_stage_has_none():
    old = [row("join", version="1"), row("join", loads=4.0, version="2")]
    text = compare([row("join", loads=4.0), row("new")], old)
    assert "| join | 5.00 | 10.0 | 4.00 | 1.00 | 1.00 |" in text
    assert "| new | 5.00 | 10.0 | 1.00 | new | new |" in text
    assert "Last release: 2 of x" in text


def test_without_a_history_nothing_is_larger(tmp_path):
    assert read_history(tmp_path / "none.csv") == []
    assert compare([row("join")], []).endswith("No release is recorded yet.")


def test_a_release_is_recorded_once(tmp_path):
    history = tmp_path / "history.csv"
    record(history, [row("join", version="1")])
    record(history, [row("join", version="2"), row("means", version="2")])
    record(history, [row("join", loads=3.0, version="2")])
    assert [(one["version"], one["stage"], one["loads"]) for one in read_history(history)] == (
        [("1", "join", "1.0"), ("2", "join", "3.0")]
    )


def test_the_history_holds_every_stage_of_its_last_release():
    rows = read_history(HISTORY)
    assert [*rows[0]] == [*FIELDS]
    last = [one["stage"] for one in rows if one["version"] == rows[-1]["version"]]
    assert last == [*STARTS, *STAGES]
    assert all(float(one["loads"]) > 0 for one in rows)


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES, ids=[name.replace("×", "x") for name in STAGES])
def test_a_stage_runs(stage, tmp_path):
    if stage not in available_stages():
        pytest.skip(f"{stage.partition(',')[0]} is not installed")
    found = in_process(stage, tmp_path, tiny=True)
    assert found["cpu"] > 0
    assert found["load"] > 0


def test_stages_are_measured_in_separate_processes_and_recorded(script, tmp_path):
    history = tmp_path / "history.csv"
    names = ["start: import", "dicts, 1 × 100"]
    words = ("--tiny", "--rounds", 1, "--data", tmp_path, "--history", history, "--record")
    assert "No release is recorded yet." in script("stages.py", *names, *words)
    assert [one["stage"] for one in read_history(history)] == names
