"""``rankgauge judge generate``: let a language model propose questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import chat_model
from rankgauge.cli.output import counted, print_message, print_result, working


@click.command(short_help="Let a language model propose questions for documents.")
@options.project
@options.documents
@click.option(
    "-n", type=click.IntRange(1), default=30, show_default=True,
    help="The number of documents to draw; the model proposes one question for each.",
)  # fmt: skip
@click.option(
    "-o", "--output", metavar="FILE",
    help="The accepted questions (JSON lines); refused questions go to FILE.refused.jsonl.  "
    "[default: PROJECT.generated.jsonl]",
)  # fmt: skip
@click.option(
    "-k",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Record the rank of the document in the top K of a BM25 search.",
)
@click.option("--dry-run", is_flag=True, help="Print calls and cost without calling the model.")
@options.language_model
@options.seed("The seed of the draw.")
@options.output_format()
def generate(
    project: str,
    collection: str,
    n: int,
    output: str | None,
    k: int,
    dry_run: bool,
    seed: int,
    format: str,
    **chat: Any,
) -> None:
    """Let a language model propose a question for each of N documents drawn at random.

    Questions that are copied from the document, repeated, or not answered by the document alone are
    refused and recorded with the reason. Accepted questions are added to PROJECT, with the
    document as a candidate. Replies are cached: repeating the command repeats no calls.

    Users ask different questions: a high value on generated questions does not predict quality in
    production. `evaluate` averages them with other questions only with --mix-origins.

    \b
    Examples:
      rankgauge judge generate judging.db --collection data -n 50 --dry-run \\
          --url http://localhost:8000/v1 --model small
    """
    from rankgauge.judging import JudgingProject, questions_of
    from rankgauge.production import generate_questions

    if output is None and "://" in project:
        raise click.UsageError("name the file of the questions: -o FILE")
    target = Path(output or f"{Path(project).with_suffix('')}.generated.jsonl")
    if chat["url"] is not None and chat["cache"] is None:
        chat["cache"] = f"{target}.cache"
    with chat_model(chat) as model, JudgingProject(project) as opened:
        if model is None:
            raise click.UsageError("name the language model: --url URL --model NAME")
        with working(f"asking {chat['model']}"):
            # Questions of an earlier call with this model and prompt are not duplicates.
            known = [q.text for q in opened.questions.values() if q.origin != "generated"]
            made = generate_questions(
                rankgauge.Collection.read(collection), n, model, seed=seed, known=known, k=k,
                dry_run=dry_run,
            )  # fmt: skip
        if not dry_run:
            refused = made.write(target)
            stored = opened.questions
            new = [each for each in made.questions if each.id not in stored]
            opened.add_questions(questions_of(new))
            print_message(
                f"{counted(len(new), 'question')} added to {project} and {target}; "
                f"refused: {refused}"
            )
    print_result(made, format)
