"""``rankgauge judge generate``: let a language model propose questions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import Output, counted, print_message, working
from rankgauge.cli.parameters import Count, Positive, command, option


@command(short_help="Let a language model propose questions for documents.")
def generate(
    *,
    project: str,
    collection: str = options.documents,
    n: Positive = option("The number of documents to draw; the model proposes one question for each.", default=30),
    output: str | None = option(
        "The accepted questions (JSON lines); refused questions go to FILE.refused.jsonl.  "
        "[default: PROJECT.generated.jsonl]",
        "-o, --output FILE",
    ),
    k: Positive = option("Record the rank of the document in the top K of a BM25 search.", default=10),
    dry_run: bool = option("Print calls and cost without calling the model."),
    chat: options.LanguageModel,
    seed: Count = option("The seed of the draw.", default=0),
    out: Output,
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
    chat = replace(chat, cache=chat.cache or f"{target}.cache")
    with chat.open(required=True) as model, JudgingProject(project) as opened:
        with working(f"asking {chat.model}"):
            # Questions of an earlier call with this model and prompt are not duplicates.
            known = [q.text for q in opened.questions.values() if q.origin != "generated"]
            made = generate_questions(
                rankgauge.Collection.read(collection), n, model, seed=seed, known=known, k=k, dry_run=dry_run
            )
        if not dry_run:
            refused = made.write(target)
            stored = opened.questions
            new = [each for each in made.questions if each.id not in stored]
            opened.add_questions(questions_of(new))
            print_message(f"{counted(len(new), 'question')} added to {project} and {target}; refused: {refused}")
    out.print(made)
