"""``rankgauge evaluate`` with a question set: weights, groups, and origins."""

import json

import pytest
from command import run


@pytest.fixture
def files(tmp_path):
    """20 questions, 8 of them generated; bm25 finds the document at rank 1 or 2."""
    names = [f"q{n:02}" for n in range(20)]
    qrels, ranking, rows = tmp_path / "qrels.txt", tmp_path / "bm25.run", []
    qrels.write_text("".join(f"{name} 0 d1 1\n" for name in names))
    ranking.write_text(
        "".join(
            f"{name} Q0 d{1 if place % 2 else 2} 1 2 bm25\n{name} Q0 d{2 if place % 2 else 1} 2 1 bm25\n"
            for place, name in enumerate(names)
        )
    )
    for place, name in enumerate(names):
        origin = "generated" if place < 8 else "log"
        row = {"id": name, "text": "x", "origin": origin, "weight": place + 1, "part": "core"}
        rows.append(row | {"part": "core" if place % 4 else "rotating"})
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return qrels, ranking, tmp_path / "set.jsonl"


def test_generated_questions_are_evaluated_separately(files):
    done = run("evaluate", *files[:2], "-m", "RR", "--questions", files[2], "--as", "json")
    assert done.returncode == 0, done.stderr
    made = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["run"] for one in made] == ["bm25 (generated)", "bm25 (log)"]
    assert [len(one["query_ids"]) for one in made] == [8, 12]
    assert all("no mean over 8 generated and 12 log questions" in one["findings"][0]["message"] for one in made)
    assert "does not predict quality in production" in done.stderr
    assert not any("does not predict" in found["message"] for found in made[1]["findings"])


def test_means_are_mixed_on_request_with_weights_and_groups(files, tmp_path):
    settings = '[evaluation]\nmix_origins = true\nweights = "weight"\n'
    (tmp_path / "rankgauge.toml").write_text(settings, encoding="utf-8")
    words = ("--questions", files[2], "--group-by", "part", "--no-save")
    done = run("evaluate", *files[:2], "-m", "RR", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # Questions at odd positions are found at rank 1: (2 + 4 + ... + 20) + (1 + 3 + ... + 19) / 2 of
    # 210.
    assert f"{(110 + 100 / 2) / 210:.4f}" in done.stdout
    assert "all, unweighted" in done.stdout
    assert "rotating" in done.stdout
    assert "8 of 20 questions were generated" in done.stdout


def test_weights_come_from_a_separate_file(files, tmp_path):
    weights = tmp_path / "weights.csv"
    rows = "".join(f"q{n:02},{1 if n % 2 else 0}\n" for n in range(20))
    weights.write_text("id,weight\n" + rows, encoding="utf-8")
    (tmp_path / "rankgauge.toml").write_text('[evaluation]\nweights = "weights.csv"\n', encoding="utf-8")
    done = run("evaluate", *files[:2], "-m", "RR", "--no-save", "--as", "csv", cwd=tmp_path)
    assert done.stdout.splitlines()[1] == "bm25,1.0"


def test_fields_need_questions(files):
    done = run("evaluate", *files[:2], "--group-by", "part")
    assert done.returncode == 2
    assert "names a field of --questions FILE" in done.stderr
    done = run("evaluate", *files[:2], "--questions", files[2], "--group-by", "lang")
    assert "no question has a field 'lang'" in done.stderr


def test_runs_with_the_same_name_are_distinguished(files, tmp_path):
    other = tmp_path / "more"
    other.mkdir()
    (other / "bm25.run").write_text(files[1].read_text())
    done = run("evaluate", files[0], files[1], other / "bm25.run", "-m", "RR", "--questions", files[2], "--as", "csv")
    names = [line.rpartition(",")[0] for line in done.stdout.splitlines()[1:]]
    assert len(set(names)) == 4
