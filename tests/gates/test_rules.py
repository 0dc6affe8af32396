"""GateRules: valid files and error messages."""

import pytest

from rankgauge import FormatError, GateRules, InputError, UnknownName
from rankgauge.gates.rules import Contract

WHOLE = """\
queries = "intersection"
depth = "any"
max_failed = 0.01
baseline = "base.json"
anchor = "release.json"

[measures]
"nDCG@10" = { margin = 0.03, floor = 0.5 }
"R@100" = {}
"FirstRel" = { margin = 1.5 }

[[contracts]]
query = "q1"
must_rank_at_most = { "d1" = 3 }
must_include = ["d2"]
forbidden = ["d9"]
k = 5

[latency]
p95 = 1.2
"""


def test_a_file_is_read_whole(tmp_path):
    path = tmp_path / "gate.toml"
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


def test_pyproject_has_the_same_keys_in_its_table(tmp_path):
    inner = WHOLE.replace("[measures]", "[tool.rankgauge.gate.measures]")
    inner = inner.replace("[[contracts]]", "[[tool.rankgauge.gate.contracts]]")
    inner = inner.replace("[latency]", "[tool.rankgauge.gate.latency]")
    path = tmp_path / "pyproject.toml"
    path.write_text(f"[project]\nname = 'x'\n\n[tool.rankgauge.gate]\n{inner}", encoding="utf-8")
    other = tmp_path / "gate.toml"
    other.write_text(WHOLE, encoding="utf-8")
    found, wanted = GateRules.find(tmp_path), GateRules.of(other)
    assert found.measures == wanted.measures
    assert found.contracts == wanted.contracts
    assert (found.baseline, found.latency) == (wanted.baseline, wanted.latency)


def test_without_rules_one_measure_is_gated(tmp_path):
    for rules in (GateRules.of(), GateRules.find(tmp_path)):
        assert [(str(g.measure), g.margin) for g in rules.measures] == [("nDCG@10", 0.02)]
        assert (rules.queries, rules.contracts, rules.source) == ("same", (), "defaults")


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"measure": {}}, UnknownName, "rules: unknown key of the rules 'measure'\nfix: did"),
        ({"measures": ["nDCG@10"]}, InputError, "rules, measures: ['nDCG@10'] is not valid"),
        ({"measures": {}}, InputError, "no measure is gated"),
        ({"measures": {"nDGC@10": {}}}, UnknownName, "did you mean nDCG"),
        ({"measures": {"nDCG@10": {"marign": 1}}}, UnknownName, "did you mean margin?"),
        ({"measures": {"nDCG@10": {"margin": 0}}}, InputError, "write a number above 0, at most 0.5"),
        ({"measures": {"nDCG@10": {"margin": -0.02}}}, InputError, "a margin of -0.02 is not valid"),
        ({"measures": {"nDCG@10": {"margin": 0.51}}}, InputError, "nDCG@10 is between 0 and 1"),
        ({"measures": {"nDCG@10": {"margin": 2}}}, InputError, "0.05; for 2% write 0.02"),
        ({"measures": {"nDCG@10": {"margin": float("inf")}}}, InputError, "inf is not valid"),
        ({"measures": {"FirstRel": {"margin": 0}}}, InputError, "fix: write a number above 0"),
        ({"measures": {"nDCG@10": {"margin": "2 %"}}}, InputError, "'2 %' is not valid"),
        ({"measures": {"nDCG@10": {"margin": True}}}, InputError, "True is not valid"),
        ({"measures": {"nDCG@10": {"margin": float("nan")}}}, InputError, "nan is not valid"),
        ({"measures": {"nDCG@10": {"floor": 1.5}}}, InputError, "nDCG@10 is between 0 and 1"),
        ({"measures": {"nDCG@10": {}, "ndcg_cut_10": {}}}, InputError, "duplicate measure nDCG@10"),
        ({"measures": {"FirstRel": {}}}, InputError, "needs an explicit margin (lower is better)"),
        ({"measures": {"DCG@10": {}}}, InputError, "needs an explicit margin (it may be above 1)"),
        ({"measures": {"NumRet": {}}}, InputError, "no better direction"),
        ({"measures": {"GMAP": {}}}, InputError, "fix: gate AP instead"),
        ({"queries": "some"}, InputError, "choose one of: same, intersection"),
        ({"queries": ["q1"]}, InputError, "choose one of: same, intersection"),
        ({"max_failed": 1}, InputError, "rules, max_failed: 1 is not valid"),
        ({"contracts": {"query": "q1"}}, InputError, "write [[contracts]]"),
        ({"contracts": [{"must_include": ["d"]}]}, InputError, "contracts.1: the contract has no query"),
        ({"contracts": [{"query": "q1"}]}, InputError, "the contract has no condition"),
        ({"contracts": [{"query": "q1", "must_includ": []}]}, UnknownName, "mean must_include"),
        ({"contracts": [{"query": "q1", "forbidden": "d"}]}, InputError, "write a list of ids"),
        (
            {"contracts": [{"query": "q1", "must_rank_at_most": {"d": 0}}]},
            InputError,
            "rules, contracts.1.must_rank_at_most.d: 0 is not valid",
        ),
        (
            {"contracts": [{"query": "q1", "must_include": ["d"], "forbidden": ["d"]}]},
            InputError,
            "document 'd' is both required and forbidden",
        ),
        ({"latency": {"p99": 1.1}}, UnknownName, "unknown key of the rules 'p99'"),
        ({"latency": {"p95": 0.9}}, InputError, "write a number above 1, at most 2: 1.1 is 10%"),
        ({"latency": {"p95": 1}}, InputError, "a limit of 1 is not valid"),
        ({"latency": {"p95": 2.5}}, InputError, "a limit of 2.5 is not valid"),
        ({"latency": {"p95": 110}}, InputError, "a limit of 110 is not valid"),
        ({"latency": {"p95": float("nan")}}, InputError, "nan is not valid"),
        ({"baseline": 3}, InputError, "write a path"),
        (7, InputError, "got int for the rules"),
    ],
)
def test_a_mistake_is_reported_with_its_position_and_a_fix(given, error, said):
    with pytest.raises(error) as raised:
        GateRules.of(given)
    assert said in str(raised.value)
    assert "fix: " in str(raised.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gate.toml", "nDCG@10 = 1", "gate.toml, line 1, column 5: not valid TOML"),
        ("gate.toml", b"\xff", "not UTF-8"),
        ("pyproject.toml", "[tool.other]", "there is no table [tool.rankgauge.gate]"),
        ("pyproject.toml", "[tool.rankgauge]\ngate = 3", "3 is not valid"),
        ("pyproject.toml", "[tool.rankgauge.gates]\ndepth = 'any'", "unknown table of [tool.rankgauge]"),
        ("pyproject.toml", "[tool]\nrankgauge = 3", "pyproject.toml, tool.rankgauge: 3 is not valid"),
        ("missing.toml", None, "there is no such file"),
    ],
)
def test_a_file_without_rules_is_reported(tmp_path, name, text, said):
    path = tmp_path / name
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises((FormatError, InputError, UnknownName)) as raised:
        GateRules.of(path)
    assert said in str(raised.value)


def test_rules_under_an_unknown_name_are_not_ignored(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool.rankgauge.gates.measures]\n'RR' = { margin = 0.05 }\n")
    with pytest.raises(UnknownName, match=r"unknown table of .* 'gates'\nfix: did you mean gate"):
        GateRules.find(tmp_path)
    path.write_text("[tool.rankgauge.bands]\n'P@5' = [0.3, 0.5, 0.7]\n")
    assert GateRules.find(tmp_path).source == "defaults"
