"""Every command fits on a screen of 80 columns for the sample; with -q it prints only numbers."""

import functools
import json
import re
import shlex
import shutil

import click
import pytest
from command import run
from production_logs import write_clicks
from schemas import published

from rankgauge.cli.main import cli
from rankgauge.judging import Choice, JudgingProject
from rankgauge.sample import sample_path

WIDTH, LINES = 80, 25
FILES = {
    "QRELS": "sample/qrels.txt",
    "BM25": "sample/runs/bm25.run",
    "KEYWORD": "sample/runs/keyword.run",
    "ANSWERS": "sample/answers/prompt-1.jsonl --reference sample/answers/questions.jsonl",
    "OTHERS": "sample/answers/prompt-2.jsonl --reference sample/answers/questions.jsonl",
    "SEARCHES": "--mapping sample/log/mapping.toml sample/log/searches.jsonl.gz",
}
PRINTED = """
evaluate QRELS BM25
evaluate QRELS BM25 KEYWORD
evaluate QRELS BM25 KEYWORD -m nDCG@10
sensitivity ties QRELS BM25 -m nDCG@10 -m AP
sensitivity unjudged QRELS BM25 -m nDCG@10
sensitivity deciding QRELS KEYWORD BM25
evaluate QRELS BM25 --questions sample/queries.jsonl --group-by type
compare QRELS BM25 KEYWORD
compare QRELS BM25 KEYWORD -m nDCG@10 --tested RR --transpose --all-pairs
compare QRELS BM25 KEYWORD fused.run
diff QRELS BM25 KEYWORD
diagnose QRELS BM25 --collection sample
explain QRELS BM25 nDCG@10
explain QRELS BM25 AP
explain QRELS KEYWORD ERR@10
explain QRELS KEYWORD nDCG@10 --against ranx
explain QRELS KEYWORD nDCG@10 --against-mean 0.55
reliability QRELS BM25 KEYWORD
status still
bench sample
bench sample/rankgauge.toml
bench sample/rankgauge.toml --diagnose
bench sample/rankgauge.toml --only bm25
explore explore.toml
collection info sample
gate QRELS KEYWORD
history list
history show 1
compare bm25#1 keyword#2
history trend
store size
judge status --store judging.db
judge relevance --store judging.db
judge agreement --store judging.db
judge votes --store judging.db
judge size --store judging.db --difference 0.05 --sd 0.2
judge pool --store pooled.db --collection sample --run BM25 -k 3
answers evaluate ANSWERS
answers calibrate ANSWERS --human sample/answers/verdicts.jsonl
answers gate OTHERS --allow-uncalibrated
logs import --dry-run SEARCHES other
logs show log
logs metrics log
logs metrics log --by week
logs metrics log -m idk_rate --by week
logs health log --run bm25
logs drift sample/queries.jsonl log --permutations 99
logs sample log -n 10
logs experiment clicks.parquet --primary search_ctr
logs interleaving clicks.parquet
logs judgments clicks.parquet
""".strip().splitlines()
# Lists, and texts about one subject, have any length.
LISTED = """
check QRELS BM25 KEYWORD
check --list
check --explain J107
measures
measures nDCG
judge settings --store judging.db
evaluate QRELS BM25 --per-query -m nDCG@10
""".strip().splitlines()
# Texts that no format changes.
TEXTS = {"check --explain J107", "measures nDCG"}
# Commands that write files, serve pages, change a store, or call a model.
SILENT = {
    "init",
    "report",
    "convert",
    "fuse",
    "cut",
    "sample",
    "history delete",
    "history export",
    "judge create",
    "judge questions",
    "judge guideline",
    "judge gold",
    "serve",
    "judge invite",
    "judge ask-model",
    "judge generate",
    "judge answers",
    "judge export",
    "judge import",
    "store backup",
    "store restore",
    "store export",
    "store forget",
    "sql",
    "spark",
}
EXTRAS = {
    "history": "sqlalchemy",
    "store": "sqlalchemy",
    "judge": "sqlalchemy",
    "answers": "sqlalchemy",
    "logs": "duckdb",
    "explore": "bm25s",
    "bench": "bm25s",
}
ANSWERED = "id,question,text,retrieval\na,q01,Yes.,bm25\nb,q01,No.,keyword\n"
VOTES = "question,left,right,winner\nq01,a,b,left\nq01,b,a,both bad\n"


def words(line):
    return shlex.split(re.sub(rf"\b({'|'.join(FILES)})\b", lambda name: FILES[name[0]], line))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("screen")
    shutil.copytree(sample_path("qrels.txt").parent, made / "sample")
    return made


@functools.cache
def done(folder, line):
    ended = run(*words(line), cwd=folder, env={"COLUMNS": "80"})
    assert ended.returncode in {0, 1}, ended
    return ended


@functools.cache
def prepared(folder, command):
    """Create the files that a command reads."""
    pytest.importorskip(EXTRAS.get(command, "rankgauge"))
    match command:
        case "compare":
            done(folder, "fuse BM25 KEYWORD -o fused.run")
        case "gate":
            done(folder, "gate QRELS BM25 --update-baseline")
        case "history" | "store":
            for run_file in ("BM25", "KEYWORD", "BM25"):
                done(folder, f"evaluate QRELS {run_file} --save --set date=2026-05-01")
        case "answers":
            done(folder, "answers gate ANSWERS --allow-uncalibrated --update-baseline")
        case "logs":
            prepared(folder, "history")
            done(folder, "logs import SEARCHES log")
            write_clicks(folder / "clicks.parquet")
        case "status":
            shutil.copytree(folder / "sample", folder / "still")
        case "explore":
            plan = (folder / "sample/rankgauge.toml").read_text()
            (folder / "explore.toml").write_text(plan.replace('"."', '"sample"'))
        case "judge":
            judge(folder)


def judge(folder):
    """Create a project with choices of two people, and votes."""
    done(folder, "judge create --store pooled.db --questions sample/queries.jsonl")
    done(folder, "judge create --store judging.db --questions sample/queries.jsonl")
    done(folder, "judge pool --store judging.db --collection sample --run BM25 --run KEYWORD -k 3")
    with JudgingProject(folder / "judging.db") as project:
        for name in ("Ann", "Bob"):
            person, _ = project.add_judge(name)
            for number in range(12):
                shown = project.next_task(person.id).presentation
                best = (min(shown.documents),)
                project.record(Choice(f"{name}{number}", shown.id, person.id, "chosen", best))
    for name, text in (("answers.csv", ANSWERED), ("votes.csv", VOTES)):
        (folder / name).write_text(text)
    done(folder, "judge answers --store judging.db answers.csv")
    done(folder, "judge votes --store judging.db --import votes.csv")


def check_screen(printed):
    check_tables(printed)
    lines = printed.splitlines()
    assert lines[0]
    for number, line in enumerate(lines):
        # A title is followed by content.
        assert line or lines[number - 1], "two empty lines"


def check_tables(printed):
    lines = printed.splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []
    for number, line in enumerate(lines):
        if set(line) == {"─"}:
            assert number + 1 < len(lines), "a table without rows"
            assert lines[number + 1].strip(), f"a table without rows below {lines[number - 1]!r}"


@pytest.mark.parametrize("line", PRINTED)
def test_a_result_is_one_screen(folder, line):
    prepared(folder, words(line)[0])
    printed = done(folder, line).stdout
    check_screen(printed)
    assert len(printed.splitlines()) <= LINES


@pytest.mark.parametrize("line", LISTED)
def test_a_list_fits_the_width(folder, line):
    prepared(folder, words(line)[0])
    check_screen(done(folder, line).stdout)


def options_of(line):
    names = words(line)
    found = cli.get_command(None, names[0])
    if isinstance(found, click.Group):
        found = found.get_command(None, names[1])
    return {name for option in found.params for name in option.opts}


@pytest.mark.parametrize("line", [line for line in PRINTED if "--full" in options_of(line)])
def test_everything_fits_the_width_and_is_more(folder, line):
    prepared(folder, words(line)[0])
    # First, since a later run of bench also says that it reuses responses.
    short = done(folder, line).stdout
    full = done(folder, f"{line} --full").stdout
    check_tables(full)
    # Lines, since times have different numbers of digits.
    assert len(full.splitlines()) >= len(re.sub(r"(?m)^Next step.*\n|^.*--full.*\n", "", short).splitlines())


@pytest.mark.parametrize("line", PRINTED)
def test_quiet_prints_only_numbers_that_are_printed_without_it(folder, line):
    prepared(folder, words(line)[0])
    assert "-q" in options_of(line)
    quiet = done(folder, f"{line} -q").stdout
    whole = done(folder, line).stdout
    numbers = re.compile(r"[-+]?\d+\.\d+")
    assert re.search(r"\d", quiet)
    assert "bench" in line or set(numbers.findall(quiet)) <= set(numbers.findall(whole))
    assert not re.search(r"•|WARNING|Next|--full", quiet)
    assert len(quiet) < len(whole) or "history list" in line


@pytest.mark.parametrize(
    "line", [line for line in (*PRINTED, *LISTED) if "--as" in options_of(line) and line not in TEXTS]
)
def test_json_names_a_published_schema_and_follows_it(folder, line):
    jsonschema = pytest.importorskip("jsonschema")
    prepared(folder, words(line)[0])
    documents = [json.loads(each) for each in done(folder, f"{line} --as json").stdout.splitlines()]
    assert documents
    for data in documents:
        name, version = data["schema"].removeprefix("rankgauge/").split("/")
        jsonschema.validate(data, published(f"{name}-{version}"))


@pytest.mark.parametrize("line", [line for line in (*PRINTED, *LISTED) if "--as" in options_of(line)])
def test_html_is_one_complete_page_without_external_resources(folder, line):
    prepared(folder, words(line)[0])
    page = done(folder, f"{line} --as html").stdout
    assert page.startswith("<!DOCTYPE html>\n")
    assert page.endswith("</html>\n")
    assert page.count("<html") == page.count("<title>") == page.count("<h1>") == 1
    assert f"<title>rankgauge {line.split()[0]}" in page
    assert re.search(r"<(table|pre|p)\b", page)
    assert not re.search(r"(src|href)=\"(?!data:)", page)


def test_every_command_is_here():
    def leaves(group, path=()):
        for name in group.list_commands(None):
            command = group.get_command(None, name)
            if isinstance(command, click.Group):
                yield from leaves(command, (*path, name))
            else:
                yield " ".join((*path, name))

    lines = [*PRINTED, *LISTED]
    printed = {name for name in leaves(cli) if any(f"{line} ".startswith(f"{name} ") for line in lines)}
    assert printed | SILENT == set(leaves(cli))
