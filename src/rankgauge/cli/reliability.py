"""``rankgauge reliability``: estimate the bias against new runs."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import named_paths
from rankgauge.cli.output import Output, working
from rankgauge.cli.parameters import Positive, argument, command, option


@command()
def reliability(
    *,
    qrels: str,
    runs: tuple[str, ...] = argument("RUN RUN..."),
    measures: tuple[str, ...] = options.measures("A measure; repeat for more.", default=("AP", "nDCG@10")),
    k: Positive | None = option(
        "The pool depth: the documents of each run were judged down to this rank.  [default: the whole run]", "RANKS"
    ),
    pairs: tuple[str, ...] = option(
        "The system or team of a run (a file, spelled as in RUN): judgments contributed only "
        "by a group are omitted for all of its runs. Repeat for more; a run without a group "
        "is a group of its own.",
        "--group RUN=GROUP",
    ),
    out: Output,
    formats: options.Formats,
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
        truth = formats.read_qrels(qrels)
        found = named_paths(runs, formats.run_format)
    named = None
    if groups:
        named = {name: groups.get(path, name) for path, name in zip(runs, found, strict=True)}
    with working(f"leaving out each of {len(found)} runs"):
        result = rankgauge.reliability(truth, found, measures, k=k, groups=named)
    out.print(result)


def _pair(text: str, runs: tuple[str, ...]) -> tuple[str, str]:
    path, equals, group = text.rpartition("=")
    if not equals or not group or path not in runs:
        raise click.BadParameter(
            f"got {text!r}, expected RUN=GROUP, with RUN spelled as in the arguments", param_hint="--group"
        )
    return path, group
