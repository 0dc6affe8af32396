"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import click

import rankgauge
from rankgauge.cli.inputs import located, settings_of
from rankgauge.cli.output import print_message
from rankgauge.cli.parameters import option

RunFormat: TypeAlias = Annotated[str, click.Choice(rankgauge.formats.RUN_FORMATS)]
QrelsFormat: TypeAlias = Annotated[str, click.Choice(rankgauge.formats.QRELS_FORMATS)]
Jobs: TypeAlias = Annotated[int, click.IntRange(1, 1024)]

run_format = option(
    f"The format of the runs, if it is not recognized: {', '.join(rankgauge.formats.RUN_FORMATS)}.", "--format NAME"
)
store = option(
    "The history: an SQLite file or postgresql://...  [default: $RANKGAUGE_HISTORY, else .rankgauge/history.db]",
    "--history FILE|URL",
)
jobs = option("Evaluate runs and test differences in N threads; the numbers are the same.", "N", default=1)
order = option("The order of documents with equal scores: document id descending, or as in the file.", default="trec")
output = option(
    "The output file: .csv, .tsv, .json, or .jsonl by name, else TREC.  [default: standard output]",
    "-o, --output FILE",
    default="-",
    show_default=False,
)
since = option("Only questions asked on or after this date or time (UTC).", "DATE")
until = option("Only questions asked before this date or time (UTC).", "DATE")
documents = option(
    "The documents: a folder, an archive, a file, or a collection of another library.", "--collection FOLDER"
)
update_baseline = option("Write the baseline instead of comparing with it, and exit.")
force = option("With --update-baseline: replace the baseline even if the gate fails.")
gate_report = option("Write an HTML page: the verdict, the next step, checks, and losses.", "--report FILE")
baseline = option("The run to compare the others with.  [default: the first]", "NAME")


def measures(text: str, **default: tuple[str, ...]) -> Any:
    """Declare the option for several measures."""
    return option(text, "-m, --measure NAME", **default)


def measure(text: str) -> Any:
    """Declare the option for one measure."""
    return option(text, "-m, --measure NAME", default="nDCG@10")


@dataclass(frozen=True)
class Formats:
    """Formats of runs and judgments; None if they are recognized."""

    run_format: RunFormat | None = run_format
    qrels_format: QrelsFormat | None = option(
        f"The format of the judgments: {', '.join(rankgauge.formats.QRELS_FORMATS)}.", "NAME"
    )

    def read_qrels(self, path: str) -> rankgauge.Qrels:
        """Return the judgments of a file."""
        return rankgauge.read_qrels(path, format=self.qrels_format)

    def run(self, path: str) -> str | rankgauge.formats.InFormat:
        """Return the path of a run, with its format if one is given."""
        return located(path, self.run_format)


@dataclass(frozen=True)
class Policies:
    """Policies of an evaluation."""

    ties: Literal["trec", "input", "best", "worst", "mean"] = option(
        "The order of documents with equal scores: document id descending, as in the file, the "
        "higher or the lower grade first, or the mean over all orders.",
        default="trec",
    )
    queries: str = option(
        "The queries to average: all judged queries, those that are also in the run, or those in "
        "a file, one id per line.",
        "all|intersection|FILE",
        default="all",
    )
    duplicates: Literal["error", "first", "best"] = option(
        "Duplicate documents in a ranking: reject them, or keep one.", default="error"
    )
    undefined: Literal["zero", "skip"] = option(
        "Count undefined values as 0 in the mean, or skip them.", default="zero"
    )
    unjudged: Literal["not-relevant", "removed"] = option(
        "Count unjudged documents as not relevant, or remove them from the ranking first (condensed lists).",
        default="not-relevant",
    )

    def keywords(self, *names: str) -> dict[str, Any]:
        """Return the policies (by default all of them) as arguments of functions."""
        found: dict[str, Any] = {**vars(self), "unjudged": self.unjudged.replace("-", " ")}
        if self.queries not in {"all", "intersection"}:
            from pathlib import Path

            found["queries"] = Path(self.queries)
        return {name: found[name] for name in names or found}


@dataclass(frozen=True)
class Saving:
    """Whether and where to save evaluations."""

    save: bool = option("Save each evaluation (see rankgauge history).")
    store: str | None = store
    settings: dict[str, str] = option(
        "A setting to save with the evaluation, such as latency_ms=12; label=TEXT and date=DATE "
        "(UTC; default: now) describe the entry; repeat for more.",
        "--set KEY=VALUE",
    )

    def open(self) -> rankgauge.History | None:
        """Return the history, or None without --save; report an unusable one before any work."""
        if not self.save and (self.store or self.settings):
            raise click.UsageError("--history and --set need --save")
        settings_of(self.settings)
        return rankgauge.History.open(self.store) if self.save else None

    def add(
        self,
        history: rankgauge.History,
        evaluation: rankgauge.Evaluation,
        *,
        qrels: Any = None,
        run: Any = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Save an evaluation with its settings (by default those of --set); print its number."""
        kept = dict(settings or settings_of(self.settings))
        label, time = str(kept.pop("label", "")), kept.pop("date", None)
        entry = history.add(evaluation, qrels, run=run, label=label, settings=kept, time=time)
        print_message(f"saved as {entry.id} in {history.where}")


@dataclass(frozen=True)
class LanguageModel:
    """Language model: the arguments of `rankgauge.llm.ChatModel`."""

    url: str | None = option("The address of the API of the language model, without /chat/completions.", "URL")
    model: str | None = option("The name of the language model.", "NAME")
    key_env: str | None = option("The environment variable that holds the API key.", "NAME")
    input_price: float | None = option("The price per million input tokens.", "X")
    output_price: float | None = option("The price per million output tokens.", "X")
    max_cost: float | None = option("Make no call that could raise the total cost above X.", "X")
    cache: str | None = option("Cache replies in this file; repeated requests are free.", "FILE")

    @contextmanager
    def open(self, *, required: bool = False) -> Iterator[Any]:
        """Yield the language model, or None if it is not required and no option is given."""
        if not required and not any(value is not None for value in vars(self).values()):
            yield None
            return
        if self.url is None or self.model is None:
            raise click.UsageError("a language model needs both --url URL and --model NAME")
        from rankgauge.llm import ChatModel

        model = ChatModel(**vars(self))
        try:
            yield model
        finally:
            model.close()
