"""Options shared by several commands, and the reading of their inputs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import click

import rankgauge
from rankgauge.cli.output import print_message
from rankgauge.cli.parameters import argument, option

_MARK = '"rankgauge/evaluation/'
NO_MODEL = "hashing compares words and their parts; a model also compares meaning: pip install 'rankgauge[vectors]'"
UNNAMED = "name the judgments and the run: QRELS RUN; or a saved evaluation of a project, such as bm25#3"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")


def from_project(read: Callable[[rankgauge.core.ProjectFile], Any], missing: str = "") -> Callable[[], Any]:
    """Return a default that is read from the project file of the current folder.

    Args:
        read: Function that returns the default, or None.
        missing: The error without a default; if empty, the default is then None.
    """

    def default() -> Any:
        path = rankgauge.core.find_project_file()
        value = None if path is None else read(rankgauge.core.ProjectFile.read(path))
        if value is None and missing:
            raise click.UsageError(missing)
        return value

    return default


def unique_names(names: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Return the names of runs; if several files have the same name, their paths."""
    return [path if names.count(name) > 1 else name for name, path in zip(names, paths, strict=True)]


def located(path: str, formats: Collection[str] = rankgauge.formats.RUN_FORMATS) -> Any:
    """Return a saved run, or a path, in the format named before it if one is: ``trec3:scores.run``."""
    if rankgauge.core.is_short_name(path):
        history = rankgauge.History()
        entry = history.entry(path)
        return rankgauge.Run.of(history.run(entry), name=entry.short_name)
    form, colon, rest = path.partition(":")
    # A file with such a name is read as it is.
    named = colon and form in formats and not os.path.exists(path)  # noqa: PTH110 - pathlib is slow to load
    return rankgauge.formats.InFormat(rest, form) if named else path


def located_qrels(path: str) -> Any:
    """Return a path of judgments, in the format named before it if one is."""
    return located(path, rankgauge.formats.QRELS_FORMATS)


class Inputs(NamedTuple):
    """Judgments and runs of a command, and texts that are known without an option."""

    qrels: Any
    runs: dict[str, Any]  # by unique names
    texts: rankgauge.Collection | None = None

    def with_judgments(self, measures: Sequence[str] | None, memory: str | None = None) -> Inputs:
        """Return inputs whose judgments are read in the form that these measures need."""
        if not isinstance(self.qrels, str | rankgauge.formats.InFormat):
            return self
        return self._replace(qrels=rankgauge.evaluation.read_judgments(self.qrels, measures, memory=memory))

    def read_runs(self) -> list[rankgauge.Run]:
        """Return the runs with their names."""
        return [rankgauge.Run.of(source, name=name) for name, source in self.runs.items()]


def read_inputs(
    paths: Sequence[str],
    count: int | None = None,
    *,
    records: bool = False,
    project: rankgauge.Project | None = None,
) -> Inputs:
    """Return the judgments and runs of the arguments [QRELS] [RUN]...

    Without QRELS, the judgments are those of `project`, of the first saved evaluation, or of the
    project of the current folder. Without any argument, the runs are the latest of this project.

    Args:
        paths: Files, or short names of saved evaluations.
        count: The number of runs, if it is fixed.
        records: Whether a single file has records, with judgments and a ranking; in a project, it is
            a run unless it is JSON.
        project: The project whose judgments replace those saved with evaluations.
    """
    here = rankgauge.core.find_project_file() is not None
    names = tuple(paths) or (latest_runs(count) if here else ())
    saved = next(filter(rankgauge.core.is_short_name, names), None)
    if records and len(names) == 1 and saved is None and (not here or names[0].endswith((".json", ".jsonl"))):
        both = rankgauge.Records.of(names[0])
        return Inputs(both, {both.run.name: None})
    without = names[:1] == (saved,) or len(names) == (count or 1) or (here and any(map(_is_run, names[:1])))
    source = names[:0] if without else names[:1]
    names = names[len(source) :]
    if not names or len(names) != (count or len(names)) or (without and saved is None and not here):
        raise click.UsageError(UNNAMED)
    runs = named_runs(names)
    if source:
        return Inputs(located_qrels(*source), runs)
    if saved is None or project is not None:
        project = project or rankgauge.Project()
        return Inputs(project.judgments, runs, project.collection)
    history, texts = rankgauge.History(), None
    with suppress(rankgauge.InputError):  # it was saved without texts
        texts = history.collection(saved)
    return Inputs(history.qrels(saved), runs, texts)


def _is_run(path: str) -> bool:
    """Return whether the content of a file is a run."""
    with suppress(rankgauge.RankgaugeError, OSError):
        # Standard input and pipes can be read only once.
        return os.path.isfile(path) and rankgauge.formats.content_of(path).kind == "run"  # noqa: PTH113
    return False


def read_documents(path: str | None) -> rankgauge.Collection:
    """Return the documents of --collection, by default those of the project."""
    if path is None and not rankgauge.core.find_project_file():
        raise click.UsageError("name the documents: --collection FOLDER; or create a project: rankgauge init")
    return rankgauge.Project().collection if path is None else rankgauge.Collection.read(path)


def latest_runs(count: int | None = None) -> tuple[str, ...]:
    """Return the latest evaluation of each run, the baseline first; with a count, `@baseline` and the latest of all."""
    history = rankgauge.History()
    latest = {entry.run: entry.short_name for entry in history.entries() if entry.ranking is not None}
    if count is None:
        return tuple(latest[run] for run in sorted(latest, key=lambda run: run != history.baseline))
    last = max(latest.values(), key=lambda name: int(name.rpartition("#")[2]), default="@latest")
    return ("@baseline", last)[-count:]


def named_runs(paths: Sequence[str]) -> dict[str, Any]:
    """Return runs by unique names, without reading files."""
    sources = [*map(located, paths)]
    names = [run.name if isinstance(run, rankgauge.Run) else rankgauge.data.run_name(run) for run in sources]
    names = unique_names(names, paths)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise rankgauge.InputError(f"duplicate run name {twice!r}", where="runs", fix="pass each run once")
    return dict(zip(names, sources, strict=True))


def read_evaluations(paths: Sequence[str]) -> list[rankgauge.Evaluation]:
    """Return saved evaluations by their short names, or those in files of JSON lines; none of other files."""
    from pathlib import Path

    if all(map(rankgauge.core.is_short_name, paths)):
        with rankgauge.History() as history:
            return history.comparable(paths)
    if not Path(paths[0]).is_file() or _MARK not in _start(paths[0]):
        return []
    from rankgauge.core.files import read_text

    evaluations, where = [], []
    for path in paths:
        try:
            every = [rankgauge.Evaluation.from_json(line) for line in read_text(path).splitlines() if line.strip()]
        except rankgauge.RankgaugeError as error:
            raise rankgauge.InputError(error.what, where=path, fix=error.fix) from None
        evaluations += every
        where += [path] * len(every)
    names = unique_names([evaluation.run_name for evaluation in evaluations], where)
    return [replace(evaluation, run_name=name) for evaluation, name in zip(evaluations, names, strict=True)]


def _start(path: str) -> str:
    with suppress(OSError), open(path, "rb") as stream:  # noqa: PTH123 - a path may be anything
        return stream.read(200).decode("utf-8", "replace")
    return ""  # the reader of runs reports the error


def read_drift(path: str) -> dict[str, Any]:
    """Read the output of ``rankgauge logs drift``."""
    import json
    from pathlib import Path

    fix = "create one: rankgauge logs drift EVAL LOG -o drift.json"
    try:
        data = json.loads(Path(path).read_bytes())
        if str(data["schema"]).startswith("rankgauge/drift/"):
            rankgauge.Finding.from_dict(data["finding"])
            return dict(data)
    except OSError as error:
        raise rankgauge.InputError(f"cannot be read: {error.strerror}", where=path, fix=fix) from None
    except (ValueError, LookupError, TypeError):
        pass
    raise rankgauge.FormatError("not a drift report", path=path, fix=fix)


def encoder_of(text: str, option: str, *, key_env: str | None = None, cache: str | None = None) -> Any:
    """Return the encoder of TYPE:NAME, with the types of plans; --search also accepts bm25."""
    from rankgauge import retrievers

    kind, _, name = text.partition(":")
    model, at, url = name.partition("@")
    if kind == "openai-embeddings" and model and at and url:
        return retrievers.EmbeddingEndpoint(url, model, key_env=key_env, cache=cache)
    try:
        return retrievers.named_encoder(text)
    except rankgauge.UnknownName:
        what, others = ("retriever", "bm25, ") if option == "--search" else ("encoder", "")
        raise rankgauge.UnknownName(
            f"unknown {what} {text!r:.80}",
            where=option,
            fix=f"choose {others}hashing, use-multilingual, model2vec:NAME, sentence-transformers:NAME, or "
            "openai-embeddings:NAME@URL",
        ) from None


def settings_of(pairs: Mapping[str, str]) -> dict[str, Any]:
    """Return settings: plain numbers, true, and false are converted, except in label and date."""
    from datetime import datetime

    try:
        datetime.fromisoformat(pairs.get("date", "2000-01-01"))
    except ValueError:
        raise click.BadParameter(
            f"got date={pairs['date']}, expected a date such as 2026-05-01", param_hint="--set"
        ) from None
    return {key: value if key in {"label", "date"} else _value(value) for key, value in pairs.items()}


def _value(text: str) -> str | float | bool:
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return {"true": True, "false": False}.get(text, text)


Jobs: TypeAlias = Annotated[int, click.IntRange(1, 1024)]

store = option(
    "The store: an SQLite file or postgresql://...  [default: $RANKGAUGE_STORE, else that of the project, "
    "else .rankgauge/store.db]",
    "--store FILE|URL",
)
jobs = option(
    "Work in N threads; the numbers are the same.  [default: the number of cores if the file of a run "
    "has 50 MiB or more, else 1]",
    "N",
)
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
    "The documents: a folder, an archive, a file, or a collection of another library.  [default: those of the project]",
    "--collection FOLDER",
)
gate_report = option("Write an HTML page: the verdict, the next step, checks, and losses.", "--report FILE")
project = argument("[PROJECT]")
project_log = from_project(
    lambda file: file.log,
    'name the log: LOG; or write log = "FOLDER" at the beginning of the project file rankgauge.toml',
)
log = argument("[LOG]", default=project_log)
responses = option("The folder in which responses are stored.  [default: .rankgauge/runs in the project]", "FOLDER")
trust = option("Run the code of a project file that belongs to another user.")
baseline = option("The run to compare the others with.  [default: the first]", "NAME")


def measures(text: str, **default: tuple[str, ...]) -> Any:
    """Declare the option for several measures."""
    return option(text, "-m, --measure NAME", **default)


def measure(text: str) -> Any:
    """Declare the option for one measure."""
    return option(text, "-m, --measure NAME", default="nDCG@10")


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
        policies: dict[str, Any] = {**vars(self), "unjudged": self.unjudged.replace("-", " ")}
        if self.queries not in {"all", "intersection"}:
            from pathlib import Path

            policies["queries"] = Path(self.queries)
        return {name: policies[name] for name in names or policies}


@dataclass(frozen=True)
class Gating:
    """What a gate does with its baseline, and how strict it is."""

    update_baseline: bool = option("Write the baseline instead of comparing with it, and exit.")
    force: bool = option("With --update-baseline: replace the baseline even if the gate fails.")
    allow_uncalibrated: bool = option(
        "Take the verdicts of a judge as true although it is not calibrated or not usable."
    )
    strict: bool = option("Exit with 3 if the verdict is INCONCLUSIVE or PASS unless rare collapse.")
    save: bool | None = option(
        "Store the result for the page Gates of rankgauge serve.  [default: in a project]", "--save/--no-save"
    )

    def save_result(self, result: rankgauge.gates.GateResult) -> None:
        """Store a result in the project, by default."""
        here = rankgauge.core.find_project_file() is not None
        if here if self.save is None else self.save:
            gates = rankgauge.store.Gates()
            gates.add(result.to_json())
            print_message(f"saved the result in {gates.where}")


@dataclass(frozen=True)
class Saving:
    """Whether and where to save evaluations."""

    save: bool | None = option(
        "Save each evaluation, with its ranking, judgments, and texts (see rankgauge history).  "
        "[default: in a project]",
        "--save/--no-save",
    )
    store: str | None = store
    settings: dict[str, str] = option(
        "A setting to save with the evaluation, such as latency_ms=12; label=TEXT and date=DATE "
        "(UTC; default: now) describe the entry; repeat for more.",
        "--set KEY=VALUE",
    )

    def open(self, project: rankgauge.Project | None = None, *, default: bool = False) -> rankgauge.History | None:
        """Return the history, or None if nothing is saved; report an unusable one before any work."""
        save = default if self.save is None else self.save
        if not save and (self.store or self.settings):
            raise click.UsageError("--store and --set need --save")
        settings_of(self.settings)
        if not save:
            return None
        return rankgauge.History(self.store) if project is None or self.store else project.evaluations

    def add(
        self,
        history: rankgauge.History,
        evaluation: rankgauge.Evaluation,
        *,
        qrels: Any = None,
        run: Any = None,
        collection: rankgauge.Collection | None = None,
        project: rankgauge.Project | None = None,
        settings: Mapping[str, Any] | None = None,
        answers: Mapping[str, Any] | None = None,
    ) -> None:
        """Save an evaluation with its settings (by default those of --set); print its number."""
        kept = dict(settings or settings_of(self.settings))
        label, time = str(kept.pop("label", "")), kept.pop("date", None)
        entry = history.add(
            evaluation,
            qrels,
            run=run,
            collection=collection,
            answers=answers,
            texts=project is None or project.file.texts,
            label=label,
            settings=kept,
            time=time,
        )
        print_message(f"saved as {entry.short_name} in {history.where}")


@dataclass(frozen=True)
class LanguageModel:
    """Language model: the arguments of `rankgauge.llm.ChatModel`."""

    url: str | None = option("The address of the API of the language model, without /chat/completions.", "URL")
    model: str | None = option(
        "The name of the language model, or of its table [models.NAME] in rankgauge.toml.", "NAME"
    )
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
        given = {name: value for name, value in vars(self).items() if value is not None}
        project = rankgauge.core.find_project_file()
        if self.url is None and self.model is not None and project is not None:
            settings = rankgauge.project.model_settings(rankgauge.core.ProjectFile.read(project), self.model)
            given = settings | {name: value for name, value in given.items() if name != "model"}
        if not {"url", "model"} <= given.keys():
            raise click.UsageError(
                "a language model needs both --url URL and --model NAME, or --model NAME and a table "
                "[models.NAME] in rankgauge.toml"
            )
        from rankgauge.llm import ChatModel

        model = ChatModel(**given)
        try:
            yield model
        finally:
            model.close()
