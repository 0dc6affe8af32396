"""GateRules: valid files and error messages."""

import pytest

from rankgauge import GateRules, InputError, UnknownName
from rankgauge.gates.rules import Contract

WHOLE = """\
[gate]
queries = "intersection"
depth = "any"
max_failed = 0.01
baseline = "base.json"
anchor = "release.json"

[gate.measures]
"nDCG@10" = { margin = 0.03, floor = 0.5 }
"R@100" = {}
"FirstRel" = { margin = 1.5 }

[[gate.contracts]]
query = "q1"
must_rank_at_most = { "d1" = 3 }
must_include = ["d2"]
forbidden = ["d9"]
k = 5

[gate.latency]
p95 = 1.2
"""


def test_a_file_is_read_whole(tmp_path):
    path = tmp_path / "rankgauge.toml"
    path.write_text(WHOLE, encoding="utf-8")
    rules = GateRules.of(path)
    assert [(str(g.measure), g.margin, g.floor) for g in rules.measures] == [
        ("nDCG@10", 0.03, 0.5),
        ("R@100", 0.02, None),
        ("FirstRel", 1.5, None),
    ]
    assert rules.contracts == (Contract("q1", {"d1": 3}, ("d2",), ("d9",), 5),)
    assert (rules.queries, rules.depth, rules.max_failed) == ("intersection", "any", 0.01)
    assert rules.latency == {"p95": 1.2}
    assert rules.baseline == str(tmp_path / "base.json")
    assert rules.anchor == str(tmp_path / "release.json")


def test_without_rules_the_measure_that_decides_is_gated(tmp_path):
    path = tmp_path / "rankgauge.toml"
    path.write_text("measures = ['RR', 'P@5']\n")
    for rules, measure in ((GateRules.of(), "nDCG@10"), (GateRules.of(path), "RR")):
        assert [(str(gated.measure), gated.margin) for gated in rules.measures] == [(measure, 0.02)]
        assert (rules.queries, rules.contracts, rules.source) == ("same", (), "defaults")
    assert rules.baseline == str(tmp_path / "gate-baseline.json")


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"measure": {}}, UnknownName, "rules, measure: unknown key of the rules 'measure'\nfix: did"),
        ({"measures": ["nDCG@10"]}, InputError, "rules, measures: got ['nDCG@10']\nfix: use a table"),
        ({"measures": {}}, InputError, "no measure is gated"),
        ({"measures": {"nDGC@10": {}}}, UnknownName, "did you mean nDCG"),
        ({"measures": {"nDCG@10": {"marign": 1}}}, UnknownName, "did you mean margin?"),
        ({"measures": {"nDCG@10": {"margin": 0}}}, InputError, "write a number above 0, at most 0.5"),
        ({"measures": {"nDCG@10": {"margin": -0.02}}}, InputError, "a margin of -0.02 is not valid"),
        ({"measures": {"nDCG@10": {"margin": 0.51}}}, InputError, "nDCG@10 is between 0 and 1"),
        ({"measures": {"nDCG@10": {"margin": 2}}}, InputError, "0.05; for 2% write 0.02"),
        ({"measures": {"nDCG@10": {"margin": float("inf")}}}, InputError, "got inf\nfix: use a number"),
        ({"measures": {"FirstRel": {"margin": 0}}}, InputError, "fix: write a number above 0"),
        ({"measures": {"nDCG@10": {"margin": "2 %"}}}, InputError, "got '2 %'"),
        ({"measures": {"nDCG@10": {"margin": True}}}, InputError, "got True"),
        ({"measures": {"nDCG@10": {"margin": float("nan")}}}, InputError, "got nan"),
        ({"measures": {"nDCG@10": {"floor": 1.5}}}, InputError, "nDCG@10 is between 0 and 1"),
        ({"measures": {"nDCG@10": {}, "ndcg_cut_10": {}}}, InputError, "duplicate measure nDCG@10"),
        ({"measures": {"FirstRel": {}}}, InputError, "needs an explicit margin (lower is better)"),
        ({"measures": {"DCG@10": {}}}, InputError, "needs an explicit margin (it may be above 1)"),
        ({"measures": {"NumRet": {}}}, InputError, "no better direction"),
        ({"measures": {"GMAP": {}}}, InputError, "fix: gate AP instead"),
        ({"queries": "some"}, UnknownName, "choose one of: same, intersection"),
        ({"queries": ["q1"]}, InputError, "got ['q1']\nfix: use text in quotes"),
        ({"max_failed": 1}, InputError, "rules, max_failed: 1 is not valid"),
        ({"contracts": {"query": "q1"}}, InputError, "use a list"),
        ({"contracts": [{"must_include": ["d"]}]}, InputError, "contracts.1: the contract has no query"),
        ({"contracts": [{"query": "q1"}]}, InputError, "the contract has no condition"),
        ({"contracts": [{"query": "q1", "must_includ": []}]}, UnknownName, "mean must_include"),
        ({"contracts": [{"query": "q1", "forbidden": "d"}]}, InputError, "forbidden: got 'd'\nfix: use a list"),
        (
            {"contracts": [{"query": "q1", "must_rank_at_most": {"d": 0}}]},
            InputError,
            "rules, contracts.1.must_rank_at_most: d: d=0 is not valid",
        ),
        (
            {"contracts": [{"query": "q1", "must_include": ["d"], "forbidden": ["d"]}]},
            InputError,
            "document 'd' is both required and forbidden",
        ),
        ({"latency": {"p99": 1.1}}, UnknownName, "unknown key of the latency 'p99'"),
        ({"latency": {"p95": 0.9}}, InputError, "write a number above 1, at most 2: 1.1 is 10%"),
        ({"latency": {"p95": 1}}, InputError, "a limit of 1 is not valid"),
        ({"latency": {"p95": 2.5}}, InputError, "a limit of 2.5 is not valid"),
        ({"latency": {"p95": 110}}, InputError, "a limit of 110 is not valid"),
        ({"latency": {"p95": float("nan")}}, InputError, "p95: got nan"),
        ({"baseline": 3}, InputError, "baseline: got 3"),
        (7, InputError, "rules: got 7 for the rules"),
    ],
)
def test_a_mistake_is_reported_with_its_position_and_a_fix(given, error, said):
    with pytest.raises(error) as raised:
        GateRules.of(given)
    assert said in str(raised.value)
    assert "fix: " in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gate]\ndepth = 3", "rankgauge.toml, line 2, gate.depth: got 3"),
        ("[gate.measures]\n'RR' = {}\n'nDCG@10' = { margin = 2 }", "line 3, gate.measures.nDCG@10.margin: a margin"),
        ("[gate.measure]\n'RR' = {}", "line 1, gate.measure: unknown key of the rules 'measure'"),
        (
            "[[gate.contracts]]\nquery = 'q1'\nforbidden = ['d1']\n[[gate.contracts]]\nk = 3",
            "line 4, gate.contracts.2: the contract has no query",
        ),
        ("gates = { depth = 'any' }", "unknown key of the project 'gates'\nfix: did you mean gate"),
        ("[tool.rankgauge.gate]\ndepth = 'any'", "unknown key of the project 'tool'"),
        (None, "there is no such file"),
    ],
)
def test_a_mistake_in_a_project_file_is_reported_with_its_line(tmp_path, text, message):
    path = tmp_path / "rankgauge.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises((InputError, UnknownName)) as raised:
        GateRules.of(path)
    assert message in str(raised.value)
