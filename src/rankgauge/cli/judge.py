"""``rankgauge judge``: people judge documents; models are compared with them."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import chat_model, encoder_of, read_runs
from rankgauge.cli.judge_files import backup, export, import_, restore
from rankgauge.cli.judge_generate import generate
from rankgauge.cli.judge_results import agreement, answers, relevance, size, votes
from rankgauge.cli.output import print_message, print_result, print_table, print_text, working
from rankgauge.core.escaping import for_terminal
from rankgauge.core.files import read_text

_WIDTH = 80
_collection = click.option(
    "--collection", metavar="FOLDER",
    help="The documents; they must include those named by the questions.",
)  # fmt: skip
# How a project judges: options of `create` and `settings`, by the name of the setting.
_settings = options.combined(
    click.option(
        "--mode", type=click.Choice(["choice", "graded", "ranking", "yes-no"]),
        help="choice: the best of 2 or 3 documents, or none; graded: a grade for each document; "
        "ranking: the best few, in order; yes-no: one document, relevant or not.",
    ),
    click.option("--shown", type=int, metavar="N", help="The number of documents in a task."),
    click.option("--title", metavar="TEXT", help="The name of the project, shown on every page."),
    click.option(
        "--grade", "grades", multiple=True, metavar="LABEL",
        help="With graded: the label of a grade; repeat for more, lowest first.",
    ),
    click.option(
        "--places", type=int, metavar="N", help="With ranking: the number of documents to rank."
    ),
    click.option(
        "--field", "fields", multiple=True, metavar="NAME",
        help="A document field to display; repeat for more, in this order.  [default: all]",
    ),
    click.option("--image", metavar="NAME", help="The field with the address of an image."),
    click.option("--link", metavar="NAME", help="The field with the address of the document."),
    click.option(
        "--judges", type=int, metavar="N", help="The number of people who judge each shared task."
    ),
    click.option(
        "--budget", type=int, metavar="N", help="The maximum number of tasks per question."
    ),
)  # fmt: skip


# Address of the web server.
_address = options.combined(
    click.option(
        "--host", default="127.0.0.1", show_default=True, help="The address to listen on."
    ),
    click.option(
        "--port", type=click.IntRange(0, 65535), default=8765, show_default=True,
        help="The port to listen on; 0 chooses a free one.",
    ),
    click.option("--open", "browser", is_flag=True, help="Open the page in a browser."),
)  # fmt: skip
# Sampling of questions from a log: options of `create` and `questions`.
_draws = options.combined(
    click.option(
        "--sample", type=click.IntRange(1), metavar="N",
        help="The file is a query log: draw N distinct questions from it.",
    ),
    click.option(
        "--by", type=click.Choice(["frequency", "uniform", "strata"]), default="frequency",
        show_default=True,
        help="With --sample: draw by frequency, all with equal probability, or equally from head, "
        "torso, and tail. Probabilities are recorded.",
    ),
    options.seed("With --sample: the seed of the draw."),
)  # fmt: skip


def _given_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings given as options."""
    return {name: value for name, value in settings.items() if value not in {None, ()}}


@click.group(cls=options.OrderedGroup, short_help="Let people judge documents.")
def judge() -> None:
    """Let people judge documents: they choose the best of two or three, or none.

    PROJECT is a file created by `judge create`, or postgresql://user:password@host/database.

    \b
    Examples:
      rankgauge judge create judging.db --questions queries.jsonl
      rankgauge judge pool judging.db --collection data --run bm25.run --run dense.run
      rankgauge judge serve judging.db
      rankgauge judge status judging.db
    """


@judge.command(short_help="Create a project with questions.")
@options.project
@click.option(
    "--questions", metavar="FILE",
    help="The questions, optionally with the documents that answer them.",
)  # fmt: skip
@_collection
@_draws
@click.option(
    "--guideline",
    metavar="FILE",
    help="The guideline for judges, in Markdown.  [default: built in]",
)
@click.option("--author", default="", metavar="NAME", help="Your name.")
@_settings
def create(
    project: str,
    questions: str | None,
    collection: str | None,
    sample: int | None,
    by: str,
    seed: int,
    guideline: str | None,
    author: str,
    **settings: Any,
) -> None:
    """Create PROJECT and add questions to it.

    \b
    Examples:
      rankgauge judge create judging.db --questions queries.jsonl
      rankgauge judge create judging.db --questions questions.csv --collection docs --shown 2
      rankgauge judge create judging.db --questions searches.csv --sample 100
      rankgauge judge create judging.db --mode graded --grade "off topic" --grade "answers it"
    """
    from rankgauge.judging import JudgingProject, Settings, project_status

    read = (
        []
        if questions is None
        else _read_questions(questions, collection, author, draw=(sample, by, seed))
    )
    text = None if guideline is None else read_text(guideline)
    with JudgingProject.create(
        project, Settings(**_given_settings(settings)), guideline=text, author=author
    ) as made:
        made.add_questions(read)
        print_result(project_status(made), "table")


@judge.command(short_help="Add questions from a file or a log, or print them.")
@options.project
@click.argument("file", metavar="[FILE]", required=False)
@_collection
@_draws
@click.option("--author", default="", metavar="NAME", help="The author of the questions.")
def questions(
    project: str,
    file: str | None,
    collection: str | None,
    sample: int | None,
    by: str,
    seed: int,
    author: str,
) -> None:
    """Add the questions in FILE; questions with an existing id are replaced.

    Without FILE, print the questions as JSON lines, as input for systems.

    \b
    Examples:
      rankgauge judge questions judging.db more.csv --collection docs
      rankgauge judge questions judging.db searches.csv --sample 100 --seed 1
      rankgauge judge questions judging.db > queries.jsonl
    """
    from rankgauge.judging import JudgingProject, project_status

    with JudgingProject(project) as opened:
        if file is None:
            for each in opened.questions.values():
                row: dict[str, Any] = {"_id": each.id, "text": each.text, "origin": each.origin}
                if each.probability is not None:
                    row["probability"] = each.probability
                print_text(json.dumps(row, ensure_ascii=False) + "\n")
            return
        opened.add_questions(_read_questions(file, collection, author, draw=(sample, by, seed)))
        print_result(project_status(opened), "table")


@judge.command(short_help="Add the documents to judge: the top k of runs and searches.")
@options.project
@options.documents
@click.option("--run", "runs", multiple=True, metavar="FILE", help="A run; repeat for more.")
@click.option("--bm25", is_flag=True, help="Search the collection with BM25.")
@click.option(
    "--dense", is_flag=False, flag_value="hashing", metavar="[ENCODER]",
    help="Search it with vectors: hashing (the default: words and character n-grams), "
    "model2vec:NAME, sentence-transformers:NAME, or openai-embeddings:NAME@URL.",
)  # fmt: skip
@click.option(
    "-k", type=click.IntRange(1), default=10, show_default=True,
    help="The number of documents to take from the top of each ranking.",
)  # fmt: skip
@click.option(
    "--random", type=click.IntRange(0), default=0, metavar="N",
    help="Draw N documents per question from outside its pool, to estimate what the pool misses.",
)  # fmt: skip
@options.language_model
@options.run_format
@options.seed("The seed of the random draw.")
@options.output_format()
def pool(
    project: str,
    collection: str,
    runs: tuple[str, ...],
    bm25: bool,
    dense: str | None,
    k: int,
    random: int,
    run_format: str | None,
    seed: int,
    format: str,
    **chat: Any,
) -> None:
    """Add candidate documents to the questions of PROJECT.

    Candidates are the union of the top k of all runs and searches. Judges never see the source of a
    document. Adding a run again adds nothing. With --url and --model, a language model reranks the
    top 3k of the runs and searches, and its top k are added.

    \b
    Examples:
      rankgauge judge pool judging.db --collection data --run bm25.run --run dense.run
      rankgauge judge pool judging.db --collection data --bm25 --dense --random 3
      rankgauge judge pool judging.db --collection data --run release-2.run -k 5
    """
    from rankgauge.judging import JudgingProject, build_pool

    with (
        chat_model(chat) as model,
        working("building the pool"),
        JudgingProject(project) as opened,
    ):
        found = build_pool(
            opened,
            collection,
            read_runs(runs, run_format, k=k),
            retrievers=_retrievers(dense, bm25=bm25),
            model=model,
            k=k,
            random=random,
            seed=seed,
        )
    print_result(found, format)


@judge.command(short_help="Show or change the settings of a project.")
@options.project
@click.option("--author", default="", metavar="NAME", help="Your name.")
@_settings
def settings(project: str, author: str, **settings: Any) -> None:
    """Print the settings of PROJECT, after changing those given as options.

    Each change creates a new version; existing presentations keep their mode.

    \b
    Examples:
      rankgauge judge settings judging.db
      rankgauge judge settings judging.db --field title --field text --link url
    """
    from rankgauge.judging import JudgingProject

    with JudgingProject(project) as opened:
        current, changed = opened.settings, _given_settings(settings)
        if changed.get("mode", current.mode) != current.mode:
            changed.setdefault("shown", None)  # use the default number of the new mode
        if changed:
            opened.change_settings(replace(current, **changed), author=author)
        rows = [(name, _value(value)) for name, value in asdict(opened.settings).items()]
    table = rankgauge.rendering.Table(("setting", "value"), tuple(rows), title=opened.where)
    print_table(table, "table")


@judge.command(short_help="Print the guideline, or store a new version of it.")
@options.project
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--author", default="", metavar="NAME", help="Your name.")
def guideline(project: str, file: str | None, author: str) -> None:
    """Print the guideline of PROJECT; with FILE, first store its text as the next version.

    Each judgment records the version that the judge saw.
    """
    from rankgauge.judging import JudgingProject

    with JudgingProject(project) as opened:
        if file is not None:
            opened.change_guideline(read_text(file), author=author)
        version, text = opened.guideline()
    print_message(f"version {version}")
    print_text("".join(f"{_folded(for_terminal(line))}\n" for line in text.splitlines()))


def _folded(line: str) -> str:
    """Fold a line of Markdown to the width of the screen, with hanging indents in lists."""
    marker = re.match(r"\s*(?:[-*+] |\d+[.)] )?", line)
    return textwrap.fill(
        line, _WIDTH, subsequent_indent=" " * (marker.end() if marker else 0),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


@judge.command(short_help="Add hidden tests: tasks with a known answer.")
@options.project
@click.argument("file", metavar="FILE")
def gold(project: str, file: str) -> None:
    """Add the hidden tests in FILE, which are mixed into the tasks of judges.

    FILE is CSV or JSON lines with question, documents, and accepted (empty if "none" is correct).

    \b
    Examples:
      rankgauge judge gold judging.db gold.jsonl
    """
    from rankgauge.judging import JudgingProject, load_gold

    with JudgingProject(project) as opened:
        tests = load_gold(file, opened)
        opened.add_gold(tests)
    print_message(f"added {len(tests)} hidden test{'s' * (len(tests) != 1)}")


@judge.command(short_help="Serve the pages on which people judge.")
@options.project
@_address
@click.option(
    "--log", metavar="LOG",
    help="A production log: leads see its metrics and question drift, and draw new questions.",
)  # fmt: skip
def serve(project: str, host: str, port: int, log: str | None, browser: bool) -> None:
    """Serve the pages of PROJECT until you press Ctrl-C.

    The printed link signs you in as admin. It works once; each start prints a new one.

    \b
    Examples:
      rankgauge judge serve judging.db
      rankgauge judge serve judging.db --port 9000 --open
      rankgauge judge serve judging.db --log log
    """
    from rankgauge.judging import JudgingProject
    from rankgauge.production import EventLog
    from rankgauge.web import serve as serve_pages

    shown = None if log is None else EventLog(log)
    with JudgingProject(project) as opened:
        serve_pages(opened, host=host, port=port, log=shown, echo=_open if browser else _print)


@judge.command(short_help="Serve a project on the bundled sample.")
@click.argument("project", metavar="[PROJECT]", required=False)
@_address
def demo(project: str | None, host: str, port: int, browser: bool) -> None:
    """Serve a project on the bundled sample: 30 questions to a library help center.

    Without PROJECT the project is temporary. An existing PROJECT is opened again.

    \b
    Examples:
      rankgauge judge demo --open
      rankgauge judge demo demo.db
    """
    import tempfile

    from rankgauge.judging import demo_project
    from rankgauge.web import serve as serve_pages

    with tempfile.TemporaryDirectory(prefix="rankgauge-") as folder:
        with working("preparing the sample"):
            made = demo_project(Path(folder, "demo.db") if project is None else project)
        with made:
            serve_pages(made, host=host, port=port, echo=_open if browser else _print)


@judge.command(short_help="Invite a judge, and print the secret link.")
@options.project
@click.argument("name", metavar="NAME")
@click.option(
    "--role", type=click.Choice(["judge", "lead", "admin"]), default="judge", show_default=True,
    help="judge: judges; lead: also sees results and adjudicates; admin: also invites people.",
)  # fmt: skip
def invite(project: str, name: str, role: str) -> None:
    """Add the judge NAME and print the path of the sign-in page.

    Prepend the address of your server: http://HOST:PORT/join/SECRET. Only a hash of the secret is
    stored.
    """
    from rankgauge.judging import JudgingProject

    with JudgingProject(project) as opened:
        added, secret = opened.add_judge(name, role=role)
    print_text(f"/join/{secret}\n")
    print_message(f"{added.name} ({added.role}) signs in at this page of your server")


@judge.command("ask-model", short_help="Let a language model judge tasks that people answered.")
@options.project
@options.language_model
@click.option("--name", metavar="NAME", help="The name of the judge.  [default: the model]")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Send at most N tasks.")
@options.output_format()
def ask_model(project: str, name: str | None, limit: int | None, format: str, **chat: Any) -> None:
    """Let a language model judge the tasks that people have answered, and store its choices.

    The model sees the same documents and guideline. `judge agreement` compares it with people; its
    judgments never count as theirs. A failed call is a missing judgment; repeat the command to
    retry.

    \b
    Examples:
      rankgauge judge ask-model judging.db --url http://localhost:8000/v1 --model small
    """
    from rankgauge.judging import JudgingProject, ask_model as ask

    with chat_model(chat) as model, JudgingProject(project) as opened:
        if model is None:
            raise click.UsageError("name the language model: --url URL --model NAME")
        with working(f"asking {chat['model']}"):
            found = ask(opened, model, name=name, limit=limit)
    print_result(found, format)


@judge.command(short_help="Show the progress and the next step.")
@options.project
@options.full("Show all judges.")
@options.output_format()
def status(project: str, full: bool, format: str) -> None:
    """Show the progress of PROJECT, and the next step."""
    from rankgauge.judging import JudgingProject, project_status

    with JudgingProject(project) as opened:
        found = project_status(opened)
    print_result(found, format, rankgauge.reports.Options(full=full))


for _command in (
    generate,
    relevance,
    agreement,
    size,
    answers,
    votes,
    export,
    import_,
    backup,
    restore,
):
    judge.add_command(_command)


def _retrievers(dense: str | None, *, bm25: bool) -> dict[str, Any]:
    """Return the retrievers that search the collection, by name."""
    from rankgauge import retrievers

    found: dict[str, Any] = {"bm25": retrievers.BM25()} if bm25 else {}
    if dense is not None:
        found["dense"] = retrievers.Dense(encoder_of(dense, "--dense"))
    return found


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(" ".join(each) if isinstance(each, tuple) else each for each in value)
    return "" if value is None else f"{value}"


def _print(link: str) -> None:
    print_text(f"{link}\n")
    print_message("The link signs you in as admin and works once. Press Ctrl-C to stop the server.")
    print_message("Links of earlier starts no longer work; each start prints a new one.")


def _open(link: str) -> None:
    """Print a link, and open it in a browser."""
    import webbrowser

    _print(link)
    webbrowser.open(link)


def _read_questions(
    path: str, collection: str | None, author: str, *, draw: tuple[int | None, str, int]
) -> list[Any]:
    from rankgauge.judging import load_questions, questions_of
    from rankgauge.production import sample_questions

    sample, by, seed = draw
    with working(f"reading {path}"):
        if sample is not None:
            return questions_of(sample_questions(path, sample, by=by, seed=seed).questions, author)
        documents = None if collection is None else rankgauge.Collection.read(collection)
        return load_questions(path, documents, author=author)
