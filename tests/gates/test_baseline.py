"""Baseline: a small file, one line per query, that reports when it cannot be trusted."""

import hashlib
import json
import math

import jsonschema
import pytest
from schemas import strict

from rankgauge import Baseline, FormatError, InputError, Run, evaluate, gate, read_qrels, read_run, sample_path

QRELS = read_qrels(sample_path("qrels.txt"))
RUN = read_run(sample_path("runs/bm25.run"))
RULES = {"measures": {"nDCG@10": {}, "FirstRel": {"margin": 1}}}
MADE = Baseline.from_run(QRELS, RUN, RULES)


def test_a_baseline_is_read_back_to_the_last_bit(tmp_path):
    path = tmp_path / "base.json"
    MADE.write(path)
    again = Baseline.read(path)
    assert again.to_json() == MADE.to_json() == path.read_text(encoding="utf-8")
    ev = evaluate(QRELS, RUN, ["nDCG@10", "FirstRel"])
    for query, values in zip(ev.query_ids, ev.per_query.tolist(), strict=True):
        stored = again.queries[query].values
        assert stored["nDCG@10"] == values[0]
        assert stored["FirstRel"] == values[1] or math.isnan(values[1])
        assert math.isnan(stored["FirstRel"]) == math.isnan(values[1])


def test_noise_is_written_and_read_too(tmp_path):
    keyword = read_run(sample_path("runs/keyword.run"))
    made = Baseline.from_run(QRELS, RUN, noise=[RUN, keyword])
    made.write(tmp_path / "base.json")
    assert Baseline.read(tmp_path / "base.json").noise == made.noise


def test_the_file_is_sorted_has_one_line_a_query_and_is_json():
    lines = MADE.to_json().splitlines()
    queries = [line for line in lines if line.startswith('"q')]
    names = [line.partition('"')[2].partition('"')[0] for line in queries[1:]]
    assert names == sorted(QRELS)
    data = json.loads(MADE.to_json())
    assert list(data["queries"]["q01"]) == ["values", "top", "judgments"]
    assert len(data["queries"]["q01"]["top"]) == 10


def test_the_first_documents_are_in_rank_order():
    tied = Baseline.from_run({"q": {"a"}}, {"q": {"a": 1.0, "b": 1.0, "c": 2.0}})
    assert tied.queries["q"].top == ("c", "b", "a")


def test_fingerprints_of_judgments_are_those_of_a_slow_loop():
    rows = sorted(QRELS["q01"].items(), key=lambda row: row[0].encode())
    text = b"".join(doc.encode() + b"\0" + repr(grade).encode() + b"\n" for doc, grade in rows)
    assert MADE.queries["q01"].judgments == hashlib.sha256(text).hexdigest()[:16]


def test_the_same_run_gives_the_same_bytes_whatever_its_order():
    turned = Run.of({query: dict(RUN[query]) for query in reversed(list(RUN))}, name="bm25")
    assert Baseline.from_run(QRELS, turned, RULES).to_json() == MADE.to_json()


def test_a_broken_run_makes_no_baseline():
    few = {query: dict(RUN[query]) for query in list(RUN)[:20]}
    with pytest.raises(InputError, match="10 of 30 queries have no ranking"):
        Baseline.from_run(QRELS, few)


def _text(**changes):
    return json.dumps({**json.loads(MADE.to_json()), **changes})


def _without(key):
    data = json.loads(MADE.to_json())
    del data[key]
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a baseline"),
        ("[]", "its schema is None"),
        ("{", "line 1: not a baseline"),
        ('{"a": 1, "a": 2}', "'a' occurs twice"),
        ("[" * 100_000, "not a baseline"),
        ("<<<<<<< ours\n{}\n=======\n", "line 1: the file has merge conflict markers"),
        (_text(schema="rankgauge/baseline/3"), "a newer rankgauge"),
        (_text(schema="rankgauge/baseline/1"), "covers only the lines of the queries"),
        (_text(schema="rankgauge/evaluation/1"), "its schema is 'rankgauge/evaluation/1'"),
        (_without("noise"), "'noise' is missing"),
        (_text(queries=3), "not a baseline"),
        (_text(depth="deep"), "not a baseline"),
        (_text(noise=3), "not a baseline"),
        (_text(fingerprints=None), "edited by hand or merged"),
        (MADE.to_json().replace("0.9491156949853351", "0.99"), "edited by hand"),
        (MADE.to_json().replace("0.9491156949853351", '"high"'), "'high' is not a value"),
        (MADE.to_json().replace("0.9491156949853351", "NaN"), "not a baseline"),
        (MADE.to_json().replace("0.9491156949853351", "1e999"), "inf is not a value"),
        (MADE.to_json().replace("loans-renewing-phone", "\\ud800"), "not a baseline"),
        (_text(depth=math.inf), "not a baseline"),
        (MADE.to_json()[:3000], "not a baseline"),
    ],
)
def test_a_damaged_file_is_refused_with_the_command_to_renew_it(tmp_path, text, said):
    path = tmp_path / "base.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((FormatError, InputError)) as raised:
        Baseline.read(path)
    assert said in str(raised.value)
    assert "fix: " in str(raised.value)


@pytest.mark.parametrize(
    "path",
    [
        ("run",),
        ("rankgauge",),
        ("depth",),
        ("measures", "nDCG@10"),
        ("noise", "runs"),
        ("noise", "bands", "nDCG@10"),
        ("queries", "q01", "jitter", "nDCG@10"),
        ("queries", "q01", "values", "nDCG@10"),
        ("queries", "q01", "judgments"),
        ("fingerprints", "file"),
        ("comment",),
        ("queries", "q01", "comment"),
    ],
    ids=".".join,
)
def test_whatever_is_edited_by_hand_is_refused(tmp_path, path):
    made = Baseline.from_run(QRELS, RUN, noise=[RUN, read_run(sample_path("runs/keyword.run"))])
    data = json.loads(made.to_json())
    *outer, key = path
    place = data
    for step in outer:
        place = place[step]
    before = place.get(key, "")
    place[key] = before + 1 if isinstance(before, int | float) else f"{before}0"
    (tmp_path / "base.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(FormatError, match="edited by hand") as raised:
        Baseline.read(tmp_path / "base.json")
    assert raised.value.fix == "write it again: rankgauge gate QRELS RUN --update-baseline"


def test_a_missing_or_unreadable_file_is_reported(tmp_path):
    with pytest.raises(InputError, match="there is no baseline yet"):
        Baseline.read(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot be read"):
        Baseline.read(tmp_path)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(FormatError, match="not UTF-8"):
        Baseline.read(tmp_path / "bytes.json")


@pytest.mark.parametrize("path", ["a\0b", "", "."])
def test_an_impossible_path_is_reported(path):
    with pytest.raises(InputError, match="cannot be"):
        Baseline.read(path)
    with pytest.raises(InputError, match="cannot be"):
        MADE.write(path)
    with pytest.raises(InputError, match="cannot be"):
        gate(QRELS, RUN, {"latency": {"p50": 1.1}}, baseline=MADE, latency=(path, path))


def test_a_mean_of_a_missing_measure_is_reported():
    with pytest.raises(InputError, match="the baseline has no AP"):
        MADE.mean("AP")
    with pytest.raises(InputError, match="the baseline has no query 'zz'"):
        MADE.mean("nDCG@10", ["zz"])


def test_a_file_laid_out_by_another_tool_is_still_the_same_baseline(tmp_path):
    path = tmp_path / "base.json"
    path.write_text(json.dumps(json.loads(MADE.to_json()), indent=2).replace("\n", "\r\n"))
    assert Baseline.read(path).to_json() == MADE.to_json()


def test_writing_leaves_the_old_file_whole_if_it_fails(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        MADE.write(tmp_path / "no" / "such.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        MADE.write(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_an_object_that_is_no_baseline_is_refused():
    with pytest.raises(InputError, match="got int, expected a baseline"):
        gate(QRELS, RUN, baseline=3)


def test_the_file_is_by_the_published_schema():
    schema = strict("baseline-2")
    qrels = {"q1": {"d": 1}, "q2": {"d": 1}, "q3": {"d": 0}}
    run = {"q1": ["d"], "q2": ["x", "d"], "q3": ["x"]}
    rules = {"measures": {"nDCG@10": {}, "FirstRel": {"margin": 1.0}}}
    other = {**run, "q1": ["x", "d"]}
    for noise in ((), (run, other)):
        made = Baseline.from_run(qrels, run, rules, noise=noise)
        data = json.loads(made.to_json(), parse_constant=pytest.fail)
        jsonschema.validate(data, schema)
        assert data["queries"]["q3"]["values"]["FirstRel"] is None
        assert ("jitter" in data["queries"]["q1"]) == bool(noise)
    del data["queries"]["q1"]["judgments"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)
