"""``rankgauge judge``: people judge documents; models are compared with them."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

import click

import rankgauge
from rankgauge import judging
from rankgauge.cli import options
from rankgauge.cli.judge_results import agreement, answers, export, import_, relevance, size, votes
from rankgauge.cli.options import encoder_of, named_runs, read_documents
from rankgauge.cli.output import Output, output_format, print_message, print_result, print_text, working
from rankgauge.cli.parameters import Count, Group, Positive, argument, command, option
from rankgauge.core.escaping import for_terminal
from rankgauge.core.files import read_text
from rankgauge.core.text import many


@command(short_help="Let a language model propose questions for documents.")
def generate(
    *,
    collection: str | None = options.documents,
    n: Positive = option("The number of documents to draw; the model proposes one question for each.", default=30),
    output: str = option(
        "The accepted questions (JSON lines); refused questions go to FILE.refused.jsonl.",
        "-o, --output FILE",
        default="generated.jsonl",
    ),
    k: Positive = option("Record the rank of the document in the top K of a BM25 search.", default=10),
    dry_run: bool = option("Print calls and cost without calling the model."),
    chat: options.LanguageModel,
    seed: Count = option("The seed of the draw.", default=0),
    store: str | None = options.store,
    out: Output,
) -> None:
    """Let a language model propose a question for each of N documents drawn at random.

    Questions that are copied from the document, repeated, or not answered by the document alone are
    refused and recorded with the reason. Accepted questions are added to the project, with the
    document as a candidate. Replies are cached: repeating the command repeats no calls.

    Users ask different questions: a high value on generated questions does not predict quality in
    production. `evaluate` averages them with others only with mix_origins = true in rankgauge.toml.

    \b
    Examples:
      rankgauge judge generate --collection data -n 50 --dry-run \\
          --url http://localhost:8000/v1 --model small
    """
    from rankgauge.production import generate_questions

    chat = replace(chat, cache=chat.cache or f"{output}.cache")
    with chat.open(required=True) as model, judging.JudgingProject(store) as opened:
        with working(f"asking {chat.model}", shares=True):
            # Questions of an earlier call with this model and prompt are not duplicates.
            known = [q.text for q in opened.questions.values() if q.origin != "generated"]
            generated = generate_questions(
                read_documents(collection), n, model, seed=seed, known=known, k=k, dry_run=dry_run
            )
        if not dry_run:
            refused = generated.write(output)
            stored = opened.questions
            new = [question for question in generated.questions if question.id not in stored]
            opened.add_questions(judging.questions_of(new))
            print_message(f"{many(len(new), 'question')} added to {opened.where} and {output}; refused: {refused}")
    out.print(generated)


_collection = option("The documents; they must include those named by the questions.", "FOLDER")


@dataclass(frozen=True)
class _Settings:
    """How a project judges: settings given as options."""

    mode: Literal["choice", "graded", "ranking", "yes-no"] | None = option(
        "choice: the best of 2 or 3 documents, or none; graded: a grade for each document; "
        "ranking: the best few, in order; yes-no: one document, relevant or not."
    )
    shown: int | None = option("The number of documents in a task.", "N")
    title: str | None = option("The name of the project, shown on every page.", "TEXT")
    grades: tuple[str, ...] = option(
        "With graded: the label of a grade; repeat for more, lowest first.", "--grade LABEL"
    )
    places: int | None = option("With ranking: the number of documents to rank.", "N")
    fields: tuple[str, ...] = option(
        "A document field to display; repeat for more, in this order.  [default: all]", "--field NAME"
    )
    image: str | None = option("The field with the address of an image.", "NAME")
    link: str | None = option("The field with the address of the document.", "NAME")
    judges: int | None = option("The number of people who judge each shared task.", "N")
    budget: int | None = option("The maximum number of tasks per question.", "N")

    def given(self) -> dict[str, Any]:
        """Return the settings given as options."""
        return {name: value for name, value in vars(self).items() if value not in {None, ()}}


@dataclass(frozen=True)
class Address:
    """Address of the web server."""

    host: str = option("The address to listen on.", default="127.0.0.1")
    port: Annotated[int, click.IntRange(0, 65535)] = option(
        "The port to listen on; 0 chooses a free one.", default=8765
    )
    names: tuple[str, ...] = option(
        "A name under which others open the pages, as behind a proxy; repeat for more.", "--name HOST"
    )
    browser: bool = option("Open the page in a browser.", "--open")

    def serve(self, judging: Any, log: Any = None, project: Any = None, *, trust: bool = False) -> None:
        """Serve the pages of a project until Ctrl-C."""
        from rankgauge.web import serve

        serve(
            judging,
            host=self.host,
            port=self.port,
            log=log,
            evaluations=project,
            trust=trust,
            names=self.names,
            echo=_open if self.browser else _print,
        )


@dataclass(frozen=True)
class _Draw:
    """Sample of the questions of a log."""

    sample: Positive | None = option("The file is a query log: draw N distinct questions from it.", "N")
    by: Literal["frequency", "uniform", "strata"] = option(
        "With --sample: draw by frequency, all with equal probability, or equally from head, "
        "torso, and tail. Probabilities are recorded.",
        default="frequency",
    )
    seed: Count = option("With --sample: the seed of the draw.", default=0)

    def questions(self, path: str, collection: str | None, author: str) -> list[Any]:
        """Return the questions of a file, or those drawn from a log."""
        from rankgauge.production import sample_questions

        with working(f"reading {path}"):
            if self.sample is not None:
                drawn = sample_questions(path, self.sample, by=self.by, seed=self.seed)
                return judging.questions_of(drawn.questions, author)
            documents = None if collection is None else rankgauge.Collection.read(collection)
            return judging.load_questions(path, documents, author=author)


@click.group(cls=Group, short_help="Let people judge documents.")
def judge() -> None:
    """Let people judge documents: they choose the best of two or three, or none.

    \b
    Examples:
      rankgauge judge create --questions queries.jsonl
      rankgauge judge pool --collection data --run bm25.run --run dense.run
      rankgauge judge status
    """


@judge.command(short_help="Create a project with questions.")
def create(
    *,
    questions: str | None = option(
        "The questions, optionally with the documents that answer them.  [default: those of the project]", "FILE"
    ),
    collection: str | None = _collection,
    draw: _Draw,
    guideline: str | None = option("The guideline for judges, in Markdown.  [default: built in]", "FILE"),
    author: str = option("Your name: serve signs you in with it.  [default: your user name]", "NAME", default=""),
    settings: _Settings,
    store: str | None = options.store,
) -> None:
    """Create a judging project in the store, and add questions to it.

    \b
    Examples:
      rankgauge judge create
      rankgauge judge create --questions questions.csv --collection docs --shown 2
      rankgauge judge create --questions searches.csv --sample 100
      rankgauge judge create --mode graded --grade "off topic" --grade "answers it"
    """
    file = rankgauge.core.find_project_file()
    text = None if guideline is None else read_text(guideline)
    if questions is not None:
        read = draw.questions(questions, collection, author)
    else:
        read = [] if file is None else judging.load_questions(rankgauge.Project(file).collection, author=author)
    chosen = (
        judging.Settings(**settings.given())
        if file is None
        else rankgauge.project.judging_settings(rankgauge.core.ProjectFile.read(file), settings.given())
    )
    with judging.JudgingProject.create(store, chosen, guideline=text, author=author) as created:
        created.add_questions(read)
        print_result(judging.judging_status(created))


@judge.command(short_help="Add questions from a file or a log, or print them.")
def questions(
    *,
    file: str | None = argument("[FILE]"),
    collection: str | None = _collection,
    draw: _Draw,
    author: str = option("The author of the questions.", "NAME", default=""),
    store: str | None = options.store,
) -> None:
    """Add the questions in FILE; questions with an existing id are replaced.

    Without FILE, print the questions as JSON lines, as input for systems.

    \b
    Examples:
      rankgauge judge questions more.csv --collection docs
      rankgauge judge questions searches.csv --sample 100 --seed 1
      rankgauge judge questions > queries.jsonl
    """
    with judging.JudgingProject(store) as opened:
        if file is None:
            for question in opened.questions.values():
                row: dict[str, Any] = {"_id": question.id, "text": question.text, "origin": question.origin}
                if question.probability is not None:
                    row["probability"] = question.probability
                print_text(json.dumps(row, ensure_ascii=False) + "\n")
            return
        opened.add_questions(draw.questions(file, collection, author))
        print_result(judging.judging_status(opened))


@judge.command(short_help="Add the documents to judge: the top k of runs and searches.")
def pool(
    *,
    collection: str | None = options.documents,
    runs: tuple[str, ...] = option(
        "A run; repeat for more.  [default: search with the retrievers of the project]", "--run FILE"
    ),
    bm25: bool = option("Search the collection with BM25."),
    dense: str | None = option(
        "Search it with vectors: hashing (the default: words and character n-grams), use-multilingual, "
        "model2vec:NAME, sentence-transformers:NAME, or openai-embeddings:NAME@URL.",
        "[ENCODER]",
        is_flag=False,
        flag_value="hashing",
    ),
    k: Positive = option("The number of documents to take from the top of each ranking.", default=10),
    random: Count = option(
        "Draw N documents per question from outside its pool, to estimate what the pool misses.", "N", default=0
    ),
    chat: options.LanguageModel,
    seed: Count = option("The seed of the random draw.", default=0),
    store: str | None = options.store,
    out: Output,
) -> None:
    """Add candidate documents to the questions of the project.

    Candidates are the union of the top k of all runs and searches. Judges never see the source of a
    document. Adding a run again adds nothing. With --url and --model, a language model reranks the
    top 3k of the runs and searches, and its top k are added.

    \b
    Examples:
      rankgauge judge pool
      rankgauge judge pool --collection data --bm25 --dense --random 3
      rankgauge judge pool --collection data --run release-2.run -k 5
    """
    from rankgauge import retrievers

    searches: dict[str, Any] = {"bm25": retrievers.BM25()} if bm25 else {}
    if dense is not None:
        searches[dense.partition("@")[0]] = retrievers.Dense(encoder_of(dense, "--dense"))
    if not (searches or runs or random) and rankgauge.core.find_project_file() is not None:
        searches = rankgauge.Project().build_retrievers()
    with chat.open() as model, working("building the pool"), judging.JudgingProject(store) as opened:
        result = judging.build_pool(
            opened,
            read_documents(collection),
            {name: rankgauge.cut(run, k, duplicates="best") for name, run in named_runs(runs).items()},
            retrievers=searches,
            model=model,
            k=k,
            random=random,
            seed=seed,
        )
    out.print(result)
    out.print_next_step(rankgauge.core.next_step("judge: tasks left", flag=opened.flag))


@judge.command(short_help="Show or change the settings of a project.")
def settings(
    *,
    author: str = option("The author of the change.", "NAME", default=""),
    settings: _Settings,
    store: str | None = options.store,
) -> None:
    """Print the settings, after changing those given as options.

    Each change creates a new version; existing presentations keep their mode.

    \b
    Examples:
      rankgauge judge settings
      rankgauge judge settings --field title --field text --link url
    """
    with judging.JudgingProject(store) as opened:
        current, changed = opened.settings, settings.given()
        if changed.get("mode", current.mode) != current.mode:
            changed.setdefault("shown", None)  # use the default number of the new mode
        if changed:
            opened.change_settings(replace(current, **changed), author=author)
        rows = [(name, _value(value)) for name, value in asdict(opened.settings).items()]
    table = rankgauge.rendering.Table(("setting", "value"), tuple(rows), title=opened.where)
    print_text(rankgauge.rendering.render_table(table, "table"))


@judge.command(short_help="Print the guideline, or store a new version of it.")
def guideline(
    *,
    file: str | None = argument("[FILE]"),
    author: str = option("The author of the change.", "NAME", default=""),
    store: str | None = options.store,
) -> None:
    """Print the guideline; with FILE, first store its text as the next version.

    Each judgment records the version that the judge saw.
    """
    with judging.JudgingProject(store) as opened:
        if file is not None:
            opened.change_guideline(read_text(file), author=author)
        version, text = opened.guideline()
    print_message(f"version {version}")
    print_text("".join(f"{_folded(for_terminal(line))}\n" for line in text.splitlines()))


def _folded(line: str) -> str:
    """Fold a line of Markdown to the width of the screen, with hanging indents in lists."""
    marker = re.match(r"\s*(?:[-*+] |\d+[.)] )?", line)
    return textwrap.fill(
        line,
        80,
        subsequent_indent=" " * (marker.end() if marker else 0),
        break_long_words=False,
        break_on_hyphens=False,
    )


@judge.command(short_help="Add hidden tests: tasks with a known answer.")
def gold(*, file: str, store: str | None = options.store) -> None:
    """Add the hidden tests in FILE, which are mixed into the tasks of judges.

    FILE is CSV or JSON lines with question, documents, and accepted (empty if "none" is correct).

    \b
    Examples:
      rankgauge judge gold gold.jsonl
    """
    with judging.JudgingProject(store) as opened:
        tests = judging.load_gold(file, opened)
        opened.add_gold(tests)
    print_message(f"added {many(len(tests), 'hidden test')}")


@judge.command(short_help="Invite a judge, and print the secret link.")
def invite(
    *,
    name: str,
    role: Literal["judge", "reader", "lead", "admin"] = option(
        "judge: judges; reader: sees evaluations only; lead: both, and adjudicates; admin: also invites people.",
        default="judge",
    ),
    store: str | None = options.store,
) -> None:
    """Add the judge NAME and print the path of the sign-in page.

    Prepend the address of your server: http://HOST:PORT/join/SECRET. Only a hash of the secret is
    stored.
    """
    with judging.JudgingProject(store) as opened:
        added, secret = opened.add_judge(name, role=role)
    print_text(f"/join/{secret}\n")
    print_message(f"{added.name} ({added.role}) signs in at this page of your server")


@judge.command("ask-model", short_help="Let a language model judge tasks that people answered.")
def ask_model(
    *,
    chat: options.LanguageModel,
    name: str | None = option("The name of the judge.  [default: the model]", "NAME"),
    limit: Positive | None = option("Send at most N tasks.", "N"),
    store: str | None = options.store,
    out: Output,
) -> None:
    """Let a language model judge the tasks that people have answered, and store its choices.

    The model sees the same documents and guideline. `judge agreement` compares it with people; its
    judgments never count as theirs. A failed call is a missing judgment; repeat the command to
    retry.

    \b
    Examples:
      rankgauge judge ask-model --url http://localhost:8000/v1 --model small
    """
    with (
        chat.open(required=True) as model,
        judging.JudgingProject(store) as opened,
        working(f"asking {chat.model}", shares=True),
    ):
        result = judging.ask_model(opened, model, name=name, limit=limit)
    out.print(result)


@judge.command(short_help="Show the progress and the next step.")
def status(*, store: str | None = options.store, out: Output = output_format("Show all judges.")) -> None:
    """Show the progress, and the next step."""
    with judging.JudgingProject(store) as opened:
        progress = judging.judging_status(opened)
    out.print(progress)


for _command in (generate, relevance, agreement, size, answers, votes, export, import_):
    judge.add_command(_command)


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(" ".join(item) if isinstance(item, tuple) else item for item in value)
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
