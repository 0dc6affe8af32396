"""Names and ids with arbitrary characters, in all outputs."""

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given, settings, strategies as st

import rankgauge
from rankgauge import (
    Baseline,
    Benchmark,
    History,
    Run,
    check,
    compare,
    diagnose,
    diff,
    evaluate,
    explain,
    gate,
    html_report,
)
from rankgauge.comparison import trend_of
from rankgauge.reports import Options, render

# No surrogates and, in ids, no NUL, which are rejected.
_HOT = st.sampled_from([*"\x1b\r\n\x9b\x00\u202e|`*<&=:# a", "::error::", "##[error]", "[bold]"])
NAMES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
    st.lists(_HOT, min_size=1, max_size=6).map("".join),
).filter(lambda name: name.strip())
IDS = NAMES.filter(lambda name: not re.search(r"[\s\0]", name) and name not in {"q", "d1", "d2", "d9"})


def inputs(name, query):
    """Return judgments and two runs, one with this name, with this query and document id."""
    qrels = {query: {query: 1, "d2": 1}, "q": {"d1": 1}}
    run = {query: {"d9": 3.0, query: 2.0}, "q": {"d1": 1.0, query: 0.5}}
    return qrels, Run.of(run, name=name), Run.of({q: dict(run["q"]) for q in qrels}, name="b")


def assert_safe(text):
    """Check that line feeds are the only control characters, and that no line is a CI command."""
    for line in text.split("\n"):
        assert line.isprintable(), line
        assert not line.lstrip().startswith("::"), line
        assert "##[" not in line


def printed(name, query, form):
    """Return the output of the commands."""
    qrels, first, second = inputs(name, query)
    evaluation = evaluate(qrels, first, ["RR", "P@2"])
    compared = compare(qrels, [first, second], "RR")
    yield render(evaluation, form)
    yield render(evaluation, form, Options(per_query=True))
    yield render(compared, form)
    yield render(diff(qrels, first, second, "RR"), form)
    yield render(diagnose(qrels, first), form)
    if form in {"table", "markdown"}:
        yield render(explain(qrels, first, "RR", query), form)
        held = gate(qrels, second, {"depth": "any"}, baseline=Baseline.from_run(qrels, first))
        yield render(held, form)
    found = check(qrels, [first, second])
    yield render(found, form)


@given(NAMES, IDS)
@example("::error::x", "::error::y")
@example("a\x1b[2J\nb", "\x9b31m")
def test_a_terminal_gets_no_control_characters(name, query):
    for text in printed(name, query, "table"):
        assert_safe(text)


@pytest.mark.parametrize("form", ["markdown", "csv", "html"])
@settings(max_examples=6, deadline=None)
@given(name=NAMES, query=IDS)
def test_neither_do_files_that_are_printed(form, name, query):
    if form != "html":
        for text in printed(name, query, form):
            assert_safe(text)
        return
    qrels, first, second = inputs(name, query)
    page = html_report(qrels, [first, second], "RR", plots=False, title=name)
    for text in (page, render(evaluate(qrels, first, "RR"), "html")):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


@given(NAMES, IDS)
@example("::error::x%0A", "::error::y")
def test_a_gate_writes_whole_xml_and_one_command_a_line(name, query):
    qrels, first, second = inputs(name, query)
    baseline = Baseline.from_run(qrels, first)
    rules = {"contracts": [{"query": query, "must_include": [query], "k": 1}], "depth": "any"}
    result = gate(qrels, second, rules, baseline=baseline)
    ET.fromstring(render(result, "junit"))
    lines = render(result, "github").splitlines()
    assert lines
    for line in lines:
        assert re.match(r"::(error|warning|notice) title=[^:,]*::", line)
        assert line.isprintable()
    assert_safe(result.explanation())


@given(NAMES, IDS)
@example("a\x1b\n::error::x", "\x9b")
def test_a_history_prints_no_control_characters(tmp_path_factory, name, query):
    qrels, first, _ = inputs(name, query)
    with History(tmp_path_factory.mktemp("kept") / "history.db") as history:
        entries = [history.add(evaluate(qrels, first, "RR"), qrels, run=first) for _ in range(2)]
        assert_safe(render(entries))
        assert_safe(render(entries[0]))
        assert_safe(render(compare(history.comparable(entries))))
        assert_safe(render(trend_of(history, "RR")))


@settings(max_examples=8, deadline=None)
@given(NAMES.map(str.strip), IDS)
@example("::error::x", "\x1b")
def test_a_benchmark_prints_no_control_characters(name, query):
    bench = Benchmark(progress=False)
    bench.add_query(query, "one", ["d1"])
    bench.add_query("q", "two", ["d2"])
    for called in dict.fromkeys([name, "other"]):
        bench.run(called, lambda text, k: ["d1", "d2"], timed=0)
    assert_safe(render(bench.compare("RR")))


def test_errors_show_a_line_of_a_file_with_its_control_characters(tmp_path):
    path = tmp_path / "a\n::error::b.txt"
    path.write_text("q1 0 d1 1\nq1 0 \x1b[2J x\n")
    with pytest.raises(rankgauge.InputError) as raised:
        rankgauge.read_qrels(path)
    lines = str(raised.value).split("\n")
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("::") for line in lines)
    assert r"a\n::error::b.txt" in lines[0]
