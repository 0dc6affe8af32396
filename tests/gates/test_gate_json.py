"""Reading a result of a gate from its JSON."""

import json

import numpy as np
import pytest

from rankgauge import Baseline, FormatError, gate
from rankgauge.gates import GateResult, values_fingerprint

QRELS = {f"q{n}": {"d": 1} for n in range(30)}
RULES = {
    "measures": {"RR": {"floor": 0.9}, "FirstRel": {"margin": 1.0}},
    "contracts": [{"query": "q0", "must_include": ["d"]}],
    "depth": "any",
}


@pytest.fixture(scope="module")
def result():
    old = Baseline.from_run(QRELS, {q: ["d", "x"] for q in QRELS}, RULES)
    return gate(QRELS, {q: ["d"] if n % 2 else ["x", "d"] for n, q in enumerate(QRELS)}, RULES, baseline=old)


def changed(result, *keys, value):
    """Return the JSON with another value; `...` removes the key."""
    data = json.loads(result.to_json())
    *path, last = keys
    part = data
    for key in path:
        part = part[key]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    return json.dumps(data)


def test_a_result_is_restored_and_shown_alike(result):
    again = GateResult.from_json(result.to_json())
    assert again.to_json() == result.to_json()
    assert str(again) == str(result)
    assert GateResult.from_json(changed(result, "later", value=1)).to_json() == result.to_json()


def test_files_of_before_times_and_fingerprints_are_read(result):
    data = json.loads(result.to_json())
    for key in ("time", "commit", "dirty", "unit"):
        del data[key]
    for check in data["checks"]:
        for key in ("fingerprint", "baseline_fingerprint"):
            if check["numbers"] is not None:
                del check["numbers"][key]
    assert GateResult.from_json(json.dumps(data)).verdict == result.verdict


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("schema",), "rankgauge/evaluation/1", "its schema is not rankgauge/gate/1"),
        (("schema",), ..., "its schema is not"),
        (("run",), ["a"], "run_name: ['a'], expected str"),
        (("run",), "\ud800", "surrogates not allowed"),
        (("verdict",), "PASS", "its verdict is not that of its checks"),
        (("checks",), [], "its verdict is not that of its checks"),
        (("checks",), {"kind": "run"}, "checks:"),
        (("checks", 0, "verdict"), "GREAT", "checks: verdict: 'GREAT', expected PASS or"),
        (("checks", 0, "kind"), ..., "checks: kind is missing"),
        (("checks", -1, "numbers"), "none", "checks: numbers:"),
        (("checks", -1, "numbers", "measure"), "Magic@3", "checks: numbers: measure: "),
        (("checks", -1, "numbers", "margin"), 0, "a margin is not above 0"),
        (("checks", -1, "numbers", "margin"), "0.02", "margin: '0.02', expected float"),
        (("checks", -1, "numbers", "gain"), float("inf"), "not JSON compliant"),
        (("checks", -1, "numbers", "gain"), 10**400, "expected float"),
        (("checks", -1, "numbers", "queries"), True, "queries: True, expected int"),
        (("checks", -1, "numbers", "losers"), [{"query": 3}], "losers: query: 3, expected str"),
        (("dirty",), "no", "dirty: 'no', expected bool"),
        (("time",), "yesterday", "Invalid isoformat string"),
    ],
)
def test_what_violates_the_schema_is_named(result, keys, value, said):
    with pytest.raises(FormatError, match="not a result of a gate") as refusal:
        GateResult.from_json(changed(result, *keys, value=value), where="r.json")
    assert said in str(refusal.value)
    assert "fix: use a file written by rankgauge gate --json" in str(refusal.value)


def test_numbers_that_cannot_be_shown_are_refused(result):
    data = json.loads(changed(result, "checks", 2, "verdict", value="INCONCLUSIVE"))
    assert GateResult.from_json(json.dumps(data)).limits()
    data["checks"][2]["numbers"]["margin"] = 5e-324
    with pytest.raises(FormatError, match="not a result of a gate"):
        GateResult.from_json(json.dumps(data))


def test_a_fingerprint_depends_on_values_not_on_order():
    first = values_fingerprint(["a", "b", "c"], [0.5, 0.0, np.nan])
    assert first == values_fingerprint(["b", "a"], [-0.0, 0.5])
    assert first != values_fingerprint(["a", "b"], [0.0, 0.5])
