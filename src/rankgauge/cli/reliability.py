"""``rankgauge reliability``: estimate the bias against new runs."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import named_paths
from rankgauge.cli.output import print_result, working


@click.command(short_help="Test whether judgments are fair to new runs.")
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True)
@options.measures("A measure; repeat for more.", ("AP", "nDCG@10"))
@click.option(
    "-k", type=click.IntRange(min=1), metavar="RANKS",
    help=(
        "The pool depth: the documents of each run were judged down to this rank.  [default: the "
        "whole run]"
    ),
)  # fmt: skip
@click.option(
    "--group", "pairs", multiple=True, metavar="RUN=GROUP",
    help="The system or team of a run (a file, spelled as in RUN): judgments contributed only by "
    "a group are omitted for all of its runs. Repeat for more; a run without a group is a group "
    "of its own.",
)  # fmt: skip
@options.output_format()
@options.run_format
@options.qrels_format
def reliability(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    k: int | None,
    pairs: tuple[str, ...],
    format: str,
    run_format: str | None,
    qrels_format: str | None,
) -> None:
    """Evaluate each RUN again without the judgments that only it contributed to the pool.

    The runs are those from which the pool was built. The loss of a run estimates how much a new
    run, which did not contribute to the judgments QRELS, may be underestimated.

    \b
    Examples:
      rankgauge reliability qrels.txt bm25.run dense.run hybrid.run
      rankgauge reliability qrels.txt *.run -k 100 -m AP -m nDCG@10
      rankgauge reliability qrels.txt a1.run a2.run b.run --group a1.run=a --group a2.run=a
    """
    groups = dict(_pair(text, runs) for text in pairs)
    with working(f"reading {qrels}"):
        truth = rankgauge.read_qrels(qrels, format=qrels_format)
        found = named_paths(runs, run_format)
    named = None
    if groups:
        named = {name: groups.get(path, name) for path, name in zip(runs, found, strict=True)}
    with working(f"leaving out each of {len(found)} runs"):
        result = rankgauge.reliability(truth, found, measures, k=k, groups=named)
    print_result(result, format)


def _pair(text: str, runs: tuple[str, ...]) -> tuple[str, str]:
    path, equals, group = text.rpartition("=")
    if not equals or not group or path not in runs:
        raise click.BadParameter(
            f"got {text!r}, expected RUN=GROUP, with RUN spelled as in the arguments",
            param_hint="--group",
        )
    return path, group
