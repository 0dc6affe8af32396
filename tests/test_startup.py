"""Imported modules: a new process loads only those that it uses."""

import os
import random
import subprocess
import sys

import pytest

import rankgauge
from rankgauge.cli.collection import fuse
from rankgauge.cli.evaluate import evaluate
from rankgauge.cli.main import cli
from rankgauge.core import native

# The environment (coverage, an editable install) may have loaded some already.
CODE = """
import sys
{first}
before = set(sys.modules)
try:
    {then}
except SystemExit as end:
    assert not end.code, end.code
print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""
EVALUATION = {
    "core",
    "core.arguments",
    "core.lazy",
    "core.escaping",
    "core.exact_sum",
    "core.grouping",
    "core.findings",
    "core.grammar",
    "core.ids",
    "core.pair_table",
    "core.policies",
    "core.progress",
    "core.recommendations",
    "core.text",
    "core.threads",
    "data",
    "data.joined_blocks",
    "data.join",
    "data.judged_run",
    "data.qrels",
    "data.run",
    "errors",
    "evaluation",
    "evaluation.evaluation",
    "evaluation.input_checks",
    "evaluation.notes",
    "evaluation.blocks",
    "evaluation.context",
    "evaluation.result",
    "formats",
    "formats.columns",
    "formats.fast_trec",
    "formats.frames",
    "formats.lines",
    "formats.mappings",
    "formats.pieces",
    "formats.readers",
    "formats.registry",
    "formats.rows",
    "formats.trec",
    "measures",
    "measures.answers",
    "measures.binary",
    "measures.compiled",
    "measures.declaration",
    "measures.diversity",
    "measures.graded",
    "measures.incomplete",
    "measures.measure",
    "measures.preferences",
    "measures.tie_means",
    "measures.user_models",
    "core.native",
    *(["core._native"] if native.core is not None else []),
}
# Each takes longer to import than reading a small file.
HEAVY = {
    "csv",
    "email",
    "gzip",
    "hashlib",
    "importlib.metadata",
    "json",
    "numpy.ma",
    "pathlib",
    "random",
    "secrets",
    "statistics",
    "traceback",
    "urllib.parse",
}
# Modules for printing an evaluation.
REPORT = {"rendering", "rendering.result", "rendering.tables", "reports", "reports.evaluations", "reports.registry"}
COMMANDS = {
    "cli",
    "cli.evaluate",
    "cli.main",
    "cli.options",
    "cli.output",
    "cli.parameters",
    "core.project_names",
}


def loaded(then, first="", env=None):
    """Return the modules that a process loads with this code, beyond those before it."""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(first=first, then=then)],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **(env or {})},
    )
    return set(done.stderr.splitlines()[-1].split()), done.stdout


def command(*words, first="", env=None):
    """Return the modules that a command loads, and its output."""
    then = f"sys.argv = {['rankgauge', *words]!r}; from rankgauge.cli import main; main()"
    return loaded(then, first, env)


def ours(modules):
    return {name.partition(".")[2] for name in modules if name.startswith("rankgauge.")}


@pytest.fixture
def files(tmp_path):
    """Write judgments and a run, not sorted by score, with ties."""
    rng = random.Random(7)
    rows = [(query, doc) for query in range(60) for doc in range(30)]
    qrels, run = tmp_path / "qrels.txt", tmp_path / "a.run"
    qrels.write_text("".join(f"{q} 0 d{d} {rng.randint(0, 2)}\n" for q, d in rows[::3]))
    run.write_text("".join(f"{q} Q0 d{d} 0 {rng.randint(0, 99) / 8} a\n" for q, d in rows))
    return str(qrels), str(run)


def test_importing_it_loads_no_other_module_of_it():
    found, _ = loaded("import rankgauge", first="import contextlib, importlib, typing")
    assert ours(found) == {"core", "core.lazy"}
    assert {name for name in found if not name.startswith("rankgauge")} <= {"__future__"}


def test_evaluating_two_files_loads_what_it_uses(files):
    found, said = loaded(
        f"import rankgauge; print(rankgauge.evaluate(*{files!r}, ['nDCG@10', 'AP', 'P(rel=2)@5']))",
        first="import numpy",
    )
    assert "nDCG@10" in said
    assert ours(found) == EVALUATION | REPORT
    assert not found & HEAVY


def test_evaluating_two_files_on_the_command_line_loads_what_it_uses(files):
    found, said = command("evaluate", *files, "-m", "AP", first="import numpy, click, click.parser")
    assert "60 queries" in said
    assert ours(found) == EVALUATION | REPORT | COMMANDS
    assert not found & HEAVY


def test_help_is_there_before_numpy_is():
    names = cli.list_commands(None)
    asked = ["--help", "--version", *(f"{name} --help" for name in names)]
    shown = (
        f"from rankgauge.cli import main\n    for words in {asked}:\n"
        "        try: sys.argv = ['rankgauge', *words.split()]; main()\n"
        "        except SystemExit: assert not {'numpy'} & {*sys.modules}, words"
    )
    _, said = loaded(shown)
    assert [name for name in names if f"Usage: rankgauge {name} " not in said] == []


def test_a_shell_completes_words_before_numpy_is_there():
    env = {"_RANKGAUGE_COMPLETE": "bash_complete", "COMP_WORDS": "rankgauge evaluate --ties w", "COMP_CWORD": "3"}
    found, said = command(env=env)
    assert "worst" in said
    assert "numpy" not in found


WORK = """
import sys, time
from rankgauge.cli.output import working
from rankgauge.core.progress import report
with working("reading a.run", shares=True):
    time.sleep({seconds})
    report(3, 7, "read")
    time.sleep({seconds} / 5)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no such terminal there")
@pytest.mark.parametrize(("seconds", "shown"), [(0, False), (1.5, True)], ids=["quick", "slow"])
def test_slow_work_shows_a_line_on_a_terminal(seconds, shown):
    reader, writer = os.openpty()
    subprocess.run(
        [sys.executable, "-c", WORK.format(seconds=seconds)],
        stdout=subprocess.PIPE,
        stderr=writer,
        text=True,
        check=True,
        env={**os.environ, "TERM": "xterm"},
    )
    os.write(writer, b"end")
    said = os.read(reader, 1 << 16)
    os.close(writer)
    os.close(reader)
    assert (b"reading a.run: 43% read" in said) == shown
    assert b" 0:00" not in said  # the second before it counts, too


def test_help_lists_the_commands_in_the_order_in_which_they_are_needed():
    names = cli.list_commands(None)
    assert names[:3] == ["init", "status", "evaluate"]
    assert [cli.get_command(None, name).name for name in names] == names


def test_an_unknown_command_is_matched_with_all_commands():
    fresh = type(cli)("fresh")
    assert fresh.get_command(None, "evalute") is None
    assert list(fresh.commands) == fresh.list_commands(None)


def test_the_summary_of_a_command_is_the_first_line_of_its_help():
    found, said = command("--help")
    assert not {name for name in ours(found) if name.startswith("cli.")} & {
        f"cli.{name}" for name in cli.list_commands(None)
    }
    for name in cli.list_commands(None):
        [line] = [line for line in said.splitlines() if line.split()[:1] == [name]]
        assert line.endswith(".")


def test_names_listed_in_help_are_the_known_ones():
    """They are listed there explicitly, since computing them would load NumPy."""
    formats = next(option for option in evaluate.params if option.name == "format")
    assert tuple(formats.type.choices) == (*rankgauge.reports.FORMATS, "trec")
    method, norm = (next(o for o in fuse.params if o.name == name) for name in ("method", "norm"))
    assert method.help == f"The method: {', '.join(rankgauge.retrievers.FUSION_METHODS)}."
    assert f": {', '.join(rankgauge.retrievers.FUSION_NORMS)}." in norm.help
