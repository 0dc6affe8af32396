"""The fixture ``rankgauge``: a failing gate fails its test, and problems are never silent."""

import subprocess
import sys
from pathlib import Path

import pytest

from rankgauge.gates import Baseline

pytest_plugins = ["pytester"]

QRELS = {f"q{n}": {"d": 1} for n in range(40)}
GOOD = {q: ["d", "x"] for q in QRELS}
BAD = {q: ["x", "d"] for q in QRELS}
UNSURE = {q: ["x", "d"] if n < 2 else ["d", "x"] for n, q in enumerate(QRELS)}
RULES = {"measures": {"RR": {"margin": 0.03}}, "baseline": "base.json"}
COMMON = f"{QRELS=}\n{GOOD=}\n{BAD=}\n{UNSURE=}\n{RULES=}\n"


@pytest.fixture
def tried(pytester, monkeypatch):
    # Load only our plugin, once: an installed one would be loaded by its entry point.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    modules = {}

    class Loaded:
        def pytest_unconfigure(self):
            modules.update(sys.modules)

    def run(code, *words):
        pytester.makepyfile(COMMON + code)
        options = ("-p", "rankgauge.pytest_plugin", "-p", "no:cacheprovider", "-W", "default")
        done = pytester.runpytest_inprocess(*options, *words, plugins=[Loaded()])
        # pytester forgets what the inner tests imported, and a second import would make other classes.
        for name, module in modules.items():
            if pytester.path not in Path(getattr(module, "__file__", None) or "").parents:
                sys.modules.setdefault(name, module)
        return done

    return run


GATE = """
def test_retrieval(rankgauge):
    rankgauge.gate(QRELS, {run}, RULES)
"""


@pytest.fixture
def baseline(pytester):
    Baseline.from_run(QRELS, GOOD, RULES).write(pytester.path / "base.json")


def test_a_baseline_is_written(pytester):
    # As users do: in a process of its own, where the entry point of the plugin is found.
    pytester.makepyfile(COMMON + GATE.format(run="GOOD"))
    done = pytester.runpytest_subprocess("--rankgauge-update-baseline")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*= rankgauge =*", "wrote *base.json (*test_retrieval)"])
    assert (pytester.path / "base.json").is_file()


@pytest.mark.usefixtures("baseline")
def test_a_pass_is_reported(tried):
    done = tried(GATE.format(run="GOOD"))
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*= rankgauge =*", "IDENTICAL: run (*test_retrieval)"])


@pytest.mark.usefixtures("baseline")
def test_a_fail_fails_with_the_explanation_and_the_queries(tried):
    done = tried(GATE.format(run="BAD"))
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "FAIL: run",
            "- FAIL: RR: the new run is between 0.536 and 0.337 worse than the baseline*",
            "  query q0: 1.000 to 0.500  d from rank 1 to 2",
        ]
    )
    done.stdout.no_fnmatch_line("*pytest_plugin.py*")


@pytest.mark.usefixtures("baseline")
def test_an_inconclusive_gate_warns_or_fails_if_required(tried):
    done = tried(GATE.format(run="UNSURE"))
    done.assert_outcomes(passed=1, warnings=1)
    done.stdout.fnmatch_lines(["*needs about 300 queries*", "INCONCLUSIVE: run (*)"])
    tried(GATE.format(run="UNSURE"), "--rankgauge-strict").assert_outcomes(failed=1)


@pytest.mark.usefixtures("baseline")
def test_incomparable_evaluations_fail(tried):
    done = tried(GATE.format(run="GOOD").replace("(QRELS", '(QRELS | {"new": {"d"}}'))
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*1 query new ('new')*"])


def test_without_a_baseline_the_test_fails_and_says_how_to_make_one(tried):
    done = tried(GATE.format(run="GOOD"))
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*base.json: there is no baseline yet*", "*fix: *"])


def test_rules_come_from_the_project_and_paths_from_the_root(tried, pytester):
    (pytester.path / "rankgauge.toml").write_text('[gate.measures]\n"P@2" = {}\n')
    code = GATE.replace(", RULES", ', baseline="b.json"')
    tried(code.format(run="GOOD"), "--rankgauge-update-baseline").assert_outcomes(passed=1)
    assert (pytester.path / "b.json").is_file()
    tried(code.format(run="BAD")).assert_outcomes(passed=1)


@pytest.mark.parametrize(("floor", "how"), [(0.5, "passed"), (0.51, "failed")])
def test_means_are_compared_with_floors(tried, floor, how):
    code = f"""
def test_floor(rankgauge):
    rankgauge.at_least(QRELS, BAD, {{"RR": {floor}, "P@1": 0.0}})

def test_lower(rankgauge):
    rankgauge.at_least(QRELS, BAD, {{"FirstRel": 2.0}})
"""
    done = tried(code)
    outcomes = {"passed": 2} if how == "passed" else {"passed": 1, "failed": 1}
    done.assert_outcomes(**outcomes)


def test_pytest_starts_without_loading_numpy():
    code = "import sys, rankgauge.pytest_plugin;print(sorted({'numpy', 'jinja2'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.usefixtures("baseline")
@pytest.mark.parametrize(("run", "how"), [("GOOD", "passed"), ("BAD", "failed")])
def test_the_name_of_a_run_neither_ends_a_line_nor_is_a_command(tried, run, how):
    named = f'__import__("rankgauge").Run.of({run}, name="x\\n::error::y\\x1b[2J")'
    done = tried(GATE.format(run=named))
    done.assert_outcomes(**{how: 1})
    assert r"x\n::error::y\x1b[2J" in done.stdout.str()
    assert not [line for line in done.outlines if line.startswith("::")]
    assert "\x1b[2J" not in done.stdout.str()


@pytest.mark.usefixtures("baseline")
def test_a_hint_names_the_option_of_pytest(tried):
    done = tried(GATE.replace("QRELS", "{{**QRELS, 'new': {{'d'}}}}").format(run="GOOD"))
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*update it with pytest --rankgauge-update-baseline*"])


def test_an_evaluation_of_answers_is_gated_and_written_as_a_baseline(tried):
    code = """
from rankgauge import Evaluation

def ev(value):
    ids = [f"q{n}" for n in range(30)]
    return Evaluation.from_values("a", ids, {"Faithfulness": [value] * 30})

RULES = {"measures": {"Faithfulness": {"margin": 0.02}}}

def test_same(rankgauge):
    rankgauge.gate(ev(1.0), rules=RULES, baseline="b.json", allow_uncalibrated=True)

def test_worse(rankgauge, request):
    if not request.config.getoption("--rankgauge-update-baseline"):
        rankgauge.gate(ev(0.0), rules=RULES, baseline="b.json", allow_uncalibrated=True)
"""
    tried(code, "--rankgauge-update-baseline").assert_outcomes(passed=2)
    tried(code).assert_outcomes(passed=1, failed=1)


def test_two_changed_settings_of_answers_are_a_warning_whatever_the_verdict_is(tried):
    code = """
from rankgauge import Baseline, Evaluation

def ev(**settings):
    ids = [f"q{n}" for n in range(200)]
    values = {"Faithfulness": [1.0] * 200}
    return Evaluation.from_values("a", ids, values, settings=settings)

RULES = {"measures": {"Faithfulness": {"margin": 0.1}}}
OLD = Baseline.from_evaluation(ev(prompt="v1", model="m1"))

def gated(rankgauge, **settings):
    rankgauge.gate(ev(**settings), rules=RULES, baseline=OLD, allow_uncalibrated=True)

def test_one(rankgauge):
    gated(rankgauge, prompt="v2", model="m1")

def test_two(rankgauge):
    gated(rankgauge, prompt="v2", model="m2")
"""
    done = tried(code)
    done.assert_outcomes(passed=2, warnings=1)
    done.stdout.fnmatch_lines(["*2 things changed: prompt (v1*v2), model (m1*m2)*"])


TWO_GATES = """
def test_first(rankgauge):
    rankgauge.gate(QRELS, GOOD, RULES{first})

def test_second(rankgauge):
    rankgauge.gate(QRELS, BAD, RULES{second})
"""


@pytest.mark.parametrize("option", ["--rankgauge-update-baseline", "--rankgauge-strict"])
def test_two_gates_cannot_share_the_baseline_of_the_rules(tried, pytester, option):
    done = tried(TWO_GATES.format(first="", second=""), option)
    done.stdout.fnmatch_lines(["*test_first and *test_second: two gates use the baseline base.json*", "*NAME.json*"])
    own = TWO_GATES.format(first=', baseline="a.json"', second=', baseline="b.json"')
    tried(own, "--rankgauge-update-baseline").assert_outcomes(passed=2)
    tried(own).assert_outcomes(passed=2)
    texts = [(pytester.path / name).read_text(encoding="utf-8") for name in ("a.json", "b.json")]
    assert texts[0] != texts[1]


def test_two_gates_cannot_write_one_baseline(tried):
    both = TWO_GATES.format(first=', baseline="a.json"', second=', baseline="./x/../a.json"')
    done = tried(both, "--rankgauge-update-baseline")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*two gates use the baseline a.json*"])
    one = TWO_GATES.format(first=', baseline="a.json"', second=', baseline="a.json"')
    tried(one.replace("BAD", "GOOD")).assert_outcomes(passed=2)


def test_processes_do_not_write_baselines(tried, pytester):
    words = ("-p", "xdist.plugin", "--rankgauge-update-baseline")
    done = tried(GATE.format(run="GOOD"), *words, "-n", "1")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*overwrite the baselines of each other*", "*add -n 0*"])
    assert not (pytester.path / "base.json").exists()
    tried(GATE.format(run="GOOD"), *words, "-n", "0").assert_outcomes(passed=1)


def test_one_test_cannot_use_the_baseline_of_the_rules_twice(tried):
    code = GATE.format(run="GOOD") + "    rankgauge.gate(QRELS, BAD, RULES)\n"
    tried(code, "--rankgauge-update-baseline").assert_outcomes(failed=1)


@pytest.mark.usefixtures("baseline")
def test_a_failing_run_replaces_a_baseline_only_with_force(tried, pytester):
    before = (pytester.path / "base.json").read_bytes()
    done = tried(GATE.format(run="BAD"), "--rankgauge-update-baseline")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*the gate fails: FAIL: RR 1.0000 * 0.5000*", "*--rankgauge-force*"])
    assert (pytester.path / "base.json").read_bytes() == before
    done = tried(GATE.format(run="BAD"), "--rankgauge-update-baseline", "--rankgauge-force")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["wrote *base.json (FAIL: RR 1.0000 * 0.5000) (*test_retrieval)"])


def test_a_file_that_is_not_a_baseline_is_kept(tried, pytester):
    (pytester.path / "base.json").write_text("q1 Q0 d1 1 1.0 bm25\n", encoding="utf-8")
    done = tried(GATE.format(run="GOOD"), "--rankgauge-update-baseline", "--rankgauge-force")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*the file is not a baseline and was not replaced*"])
    assert (pytester.path / "base.json").read_text(encoding="utf-8").startswith("q1 Q0")
