"""Files with control characters in names and ids: output on stdout and stderr."""

import json

import command
import pytest

NAME = "x\x1b[2J\n::error::name\x9b\u202e.run"
QUERY = "::error::q\x1b\x9b"
LINES = f"{QUERY} Q0 d1 1 2.0 t\n{QUERY} Q0 d2 2 1.0 t\nq2 Q0 d2 1 1.0 t\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "qrels.txt").write_text(f"{QUERY} 0 d1 1\nq2 0 d2 1\n", encoding="utf-8")
    (tmp_path / NAME).write_text(LINES, encoding="utf-8")
    (tmp_path / "b.run").write_text(LINES.replace("d1", "d3"), encoding="utf-8")
    (tmp_path / "rules.toml").write_text('[gate]\ndepth = "any"\n[gate.measures]\n"RR" = { margin = 0.1 }\n')
    return tmp_path


def run(folder, *words):
    return command.run(*words, cwd=folder)


def assert_safe(*texts, commands=False):
    for text in texts:
        for line in text.split("\n"):
            assert line.replace("\t", "").isprintable(), line
            assert commands or not line.lstrip().startswith("::"), line


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "qrels.txt", NAME, "-m", "RR"),
        ("evaluate", "qrels.txt", NAME, "-m", "RR", "--per-query", "--as", "trec"),
        ("evaluate", "qrels.txt", NAME, "-m", "RR", "--per-query", "--as", "csv"),
        ("evaluate", "qrels.txt", NAME, "-m", "RR", "--as", "json"),
        ("sensitivity", "ties", "qrels.txt", NAME),
        ("sensitivity", "unjudged", "qrels.txt", NAME),
        ("compare", "qrels.txt", NAME, "b.run", "-m", "RR"),
        ("diff", "qrels.txt", NAME, "b.run", "-m", "RR"),
        ("diagnose", "qrels.txt", NAME),
        ("explain", "qrels.txt", NAME, "RR"),
        ("check", "qrels.txt", NAME),
        ("reliability", "qrels.txt", NAME, "b.run", "-m", "RR"),
        ("fuse", NAME, "b.run", "-o", "fused.run"),
        ("convert", NAME, "out\x1b.run"),
        ("sample", NAME, "-n", "1", "-o", "out.run"),
        ("evaluate", "qrels.txt", NAME, "-m", "RR", "--save", "--store", "h.db"),
    ],
    ids=lambda words: " ".join(word for word in words if word.isprintable()),
)
def test_neither_channel_gets_a_control_character_or_a_command(folder, words):
    code, out, err = run(folder, *words)
    assert code in {0, 1}, err
    assert out or err
    assert_safe(out, err)


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "qrels.txt", NAME.replace(".run", ".nowhere")),
        ("evaluate", "qrels.txt", "b.run", "-m", "\x1b\n::error::m"),
        ("evaluate", "qrels.txt", "b.run", "--as", "\x1b\n::error::form"),
        ("evaluate", "qrels.txt", "b.run", "--\x1b\n::error::option"),
        ("x\x1b\n::error::command",),
        ("gate", "qrels.txt", "b.run", "--rules", "\x1b\n::error::rules.toml"),
        ("history", "list", "--store", "\x1b\n::error::h.db"),
        ("report", "qrels.txt", "b.run", "-o", "\x1b\n::error::/page.html"),
    ],
    ids=["path", "measure", "choice", "option", "command", "rules", "history", "report"],
)
def test_neither_do_errors(folder, words):
    code, out, err = run(folder, *words)
    assert code == 2
    assert_safe(out, err)


def test_a_gate_with_annotations_prints_no_command_but_its_own(folder):
    common = ("--rules", "rules.toml", "--baseline", "base.json")
    code, out, err = run(folder, "gate", "qrels.txt", NAME, *common, "--update-baseline")
    assert code == 0, err
    assert_safe(out, err)
    assert json.loads((folder / "base.json").read_text())["run"].startswith("x\x1b")
    code, out, err = run(folder, "gate", "qrels.txt", "b.run", *common, "--github")
    assert_safe(out, err, commands=True)
    commands = [line for line in out.splitlines() if line.lstrip().startswith("::")]
    assert commands
    assert all(line.startswith("::warning title=rankgauge") for line in commands)
