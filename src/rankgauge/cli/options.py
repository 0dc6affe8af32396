"""Options shared by several commands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import click

import rankgauge
from rankgauge.cli.inputs import queries_of
from rankgauge.cli.output import QUIET

_Option: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

_FORMATS = ("table", "markdown", "latex", "html", "csv", "json")
_NEXT = "; repeat for more"


class OrderedGroup(click.Group):
    """Group that lists commands in the order of their definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return all commands, in the order in which they were added."""
        return list(self.commands)


def combined(*options: _Option) -> _Option:
    """Return several options, in this order, as one decorator."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


run_format = click.option(
    "--format", "run_format", metavar="NAME", type=click.Choice(rankgauge.formats.RUN_FORMATS),
    help="The format of the runs, if it is not recognized: "
    f"{', '.join(rankgauge.formats.RUN_FORMATS)}.",
)  # fmt: skip
qrels_format = click.option(
    "--qrels-format", metavar="NAME", type=click.Choice(rankgauge.formats.QRELS_FORMATS),
    help=f"The format of the judgments: {', '.join(rankgauge.formats.QRELS_FORMATS)}.",
)  # fmt: skip
store = click.option(
    "--history", "store", metavar="FILE|URL",
    help="The history: an SQLite file or postgresql://...  [default: $RANKGAUGE_HISTORY, else "
    ".rankgauge/history.db]",
)  # fmt: skip
save = click.option("--save", is_flag=True, help="Save each evaluation (see rankgauge history).")
label = click.option(
    "--label",
    default="",
    metavar="TEXT",
    help="A label for the saved evaluation, such as: release 2.1.",
)
jobs = click.option(
    "--jobs", type=click.IntRange(1, 1024), default=1, show_default=True, metavar="N",
    help="Evaluate runs and test differences in N threads; the numbers are the same.",
)  # fmt: skip
order = click.option(
    "--ties", type=click.Choice(["trec", "input"]), default="trec", show_default=True,
    help="The order of documents with equal scores: document id descending, or as in the file.",
)  # fmt: skip
output = click.option(
    "-o", "--output", default="-", metavar="FILE",
    help="The output file: .csv, .tsv, .json, or .jsonl by name, else TREC.  [default: standard "
    "output]",
)  # fmt: skip


project = click.argument("project", metavar="PROJECT")
log = click.argument("log", metavar="LOG")
period = combined(
    click.option(
        "--since", metavar="DATE", help="Only questions asked on or after this date or time (UTC)."
    ),
    click.option(
        "--until", metavar="DATE", help="Only questions asked before this date or time (UTC)."
    ),
)
update_baseline = combined(
    click.option(
        "--update-baseline", is_flag=True,
        help="Write the baseline instead of comparing with it, and exit.",
    ),
    click.option(
        "--force", is_flag=True,
        help="With --update-baseline: replace the baseline even if the gate fails.",
    ),
)  # fmt: skip
gate_report = click.option(
    "--report", "page", metavar="FILE",
    help="Write an HTML page: the verdict, the next step, checks, and losses.",
)  # fmt: skip
# Read by `print_result` from the context.
quiet = click.option(
    "-q", "--quiet", is_flag=True, expose_value=False,
    callback=lambda context, _option, value: context.meta.update({QUIET: value}),
    help="Print only numbers: no titles, notes, warnings, or next step.",
)  # fmt: skip


def output_format(*more: str) -> _Option:
    """Return the options of the output: --as and --quiet.

    Args:
        more: Additional formats of this command.
    """
    format = click.option(
        "--as", "format", type=click.Choice([*_FORMATS, *more]), default="table",
        show_default=True, help="The output format.",
    )  # fmt: skip
    return combined(format, quiet)


def plot(text: str) -> _Option:
    """Return the option --plot, with the argument name `drawn`."""
    return click.option("--plot", "drawn", metavar="FILE", help=text)


def measures(text: str, default: tuple[str, ...] = ()) -> _Option:
    """Return the option for several measures, with the argument name `measures`."""
    return click.option(
        "-m", "--measure", "measures", multiple=True, metavar="NAME", help=text, default=default,
        show_default=bool(default),
    )  # fmt: skip


def measure(text: str) -> _Option:
    """Return the option for one measure, with the argument name `measure`."""
    return click.option(
        "-m", "--measure", default="nDCG@10", show_default=True, metavar="NAME", help=text
    )


def full(text: str) -> _Option:
    """Return the option that prints the full report."""
    return click.option("--full", is_flag=True, help=text)


def collection(text: str) -> _Option:
    """Return the option for a collection."""
    return click.option("--collection", metavar="FOLDER", help=text)


documents = click.option(
    "--collection", metavar="FOLDER", required=True,
    help="The documents: a folder, an archive, a file, or a collection of another library.",
)  # fmt: skip


def baseline(text: str = "The run to compare the others with.  [default: the first]") -> _Option:
    """Return the option for a baseline."""
    return click.option("--baseline", metavar="NAME", help=text)


def seed(text: str) -> _Option:
    """Return the option for a seed."""
    return click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help=text)


_POLICIES = combined(
    click.option(
        "--ties", type=click.Choice(["trec", "input", "best", "worst", "mean"]), default="trec",
        show_default=True,
        help="The order of documents with equal scores: document id descending, as in the file, "
        "the higher or the lower grade first, or the mean over all orders.",
    ),
    click.option(
        "--queries", default="all", show_default=True, metavar="all|intersection|FILE",
        help="The queries to average: all judged queries, those that are also in the run, or those "
        "in a file, one id per line.",
    ),
    click.option(
        "--duplicates", type=click.Choice(["error", "first", "best"]), default="error",
        show_default=True, help="Duplicate documents in a ranking: reject them, or keep one.",
    ),
    click.option(
        "--undefined", type=click.Choice(["zero", "skip"]), default="zero", show_default=True,
        help="Count undefined values as 0 in the mean, or skip them.",
    ),
    click.option(
        "--unjudged", type=click.Choice(["not-relevant", "removed"]), default="not-relevant",
        show_default=True, help="Count unjudged documents as not relevant, or remove "
        "them from the ranking first (condensed lists).",
    ),
)  # fmt: skip


def policies(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of all policies; the command receives them as one mapping, `policies`."""

    @functools.wraps(command)
    def with_policies(
        *, ties: str, queries: str, duplicates: str, undefined: str, unjudged: str, **others: Any
    ) -> Any:
        chosen = {
            "ties": ties,
            "queries": queries_of(queries),
            "duplicates": duplicates,
            "undefined": undefined,
            "unjudged": unjudged.replace("-", " "),
        }
        return command(policies=chosen, **others)

    return _POLICIES(with_policies)


# The options of a language model: arguments of `ChatModel`, passed to `chat_model` as one mapping.
language_model = combined(
    click.option(
        "--url", metavar="URL",
        help="The address of the API of the language model, without /chat/completions.",
    ),
    click.option("--model", metavar="NAME", help="The name of the language model."),
    click.option(
        "--key-env", metavar="NAME", help="The environment variable that holds the API key."
    ),
    click.option(
        "--input-price", type=float, metavar="X", help="The price per million input tokens."
    ),
    click.option(
        "--output-price", type=float, metavar="X", help="The price per million output tokens."
    ),
    click.option(
        "--max-cost", type=float, metavar="X",
        help="Make no call that could raise the total cost above X.",
    ),
    click.option(
        "--cache", metavar="FILE", help="Cache replies in this file; repeated requests are free."
    ),
)  # fmt: skip
