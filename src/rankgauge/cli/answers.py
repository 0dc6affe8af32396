"""``rankgauge answers``: evaluate generated answers and find the stage that limits them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import click

import rankgauge
from rankgauge import answers as package
from rankgauge.cli import options
from rankgauge.cli.options import encoder_of, settings_of
from rankgauge.cli.output import (
    Output,
    check_writable,
    output_format,
    print_message,
    working,
    write_baseline,
    write_report,
)
from rankgauge.cli.parameters import Count, Group, Positive, argument, declare, option

_ROWS = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
_PRIMARY = "Completeness"
_SEARCHED = 10  # documents used to judge whether the collection can answer a question


@click.group(cls=Group, short_help="Evaluate generated answers, and find the limiting stage.")
def answers() -> None:
    """Evaluate the answers of a RAG system, and find the stage that limits them.

    FILE has a record for each question: question, contexts, answer, reference. Field names of
    ragas, deepeval, RAGChecker, TREC RAG, and OpenInference also work. In a project, the table
    [answers] of rankgauge.toml has defaults for FILE, --reference, --collection, and --model.

    \b
    Examples:
      rankgauge answers evaluate answers.jsonl --reference questions.jsonl
    """


def _wordings(criteria: Mapping[str, str]) -> dict[str, str]:
    """Return criteria in words: @FILE is replaced by the text of the file."""
    from rankgauge.core.files import read_text

    wordings = {
        name: (read_text(text[1:]) if text.startswith("@") else text).strip() for name, text in criteria.items()
    }
    if not all(wordings.values()):
        raise click.BadParameter("a criterion has no words", param_hint="--criterion")
    return wordings


def _default(key: str, missing: str = "") -> Callable[[], Any]:
    """Return a default from the table [answers] of the project."""
    return options.from_project(lambda file: rankgauge.project.answer_settings(file).get(key), missing)


_file = argument(
    "[FILE]", default=_default("file", 'name the answers: FILE; or write [answers] and file = "FILE" in rankgauge.toml')
)
_reference = option(
    "Questions with reference answers and other fields, joined by id.",
    "FILE",
    default=_default("reference"),
    show_default=False,
)
_collection = option(
    "The texts of the contexts, if FILE has only their ids.",
    "FOLDER",
    default=_default("collection"),
    show_default=False,
)
_criterion = option(
    "A criterion in words, judged as the measure Criterion(name=NAME): "
    "polite='The answer is polite.' or polite=@FILE; repeat for more.",
    "NAME=WORDING|@FILE",
)


@dataclass(frozen=True, kw_only=True)
class _Judging:
    """Answers to read, and their judge."""

    reference: str | None = _reference
    system: str | None = option("The system to use, if FILE has several.", "NAME")
    collection: str | None = _collection
    verdicts: str | None = option("A file of verdicts with key, label, and judge.", "FILE")
    judge: str | None = option("Use only the verdicts of this judge, from --verdicts or else the store.", "NAME")
    store: str | None = options.store
    chat: options.LanguageModel
    claims: Literal["sentences", "model"] = option(
        "The claims: sentences, or extracted by the model.", default="sentences"
    )
    search: str | None = option(
        "Have the model also judge whether the first 10 documents that RETRIEVER finds in "
        "--collection answer a question. RETRIEVER is bm25 or an ENCODER, such as hashing (see "
        "--encoder).",
        "RETRIEVER",
    )
    replicates: Positive = option("Have the model judge each item N times; the majority label counts.", "N", default=1)
    criterion: dict[str, str] = _criterion

    def model(self, *, person: bool) -> options.LanguageModel:
        """Return the language model; without another judge, that of the project."""
        if person or any((self.verdicts, self.judge, self.chat.url, self.chat.model)):
            return self.chat
        return replace(self.chat, model=_default("model")())

    @cached_property
    def criteria(self) -> dict[str, str]:
        """Criteria by name."""
        return _wordings(self.criterion)


@dataclass(frozen=True)
class _Values:
    """What is measured, and the calibration of the judge."""

    person: bool = option("People gave the verdicts: no calibration is needed.")
    calibration: str | None = option("The calibration, written by calibrate -o.", "FILE")
    human: str | None = option(
        "Verdicts of people on all items of a random sample of the questions, which correct means "
        "and differences whatever the errors of the judge.",
        "FILE|STORE",
    )
    settings: dict[str, str] = option(
        "A setting of the system, such as prompt=2 or retrieval=bm25; repeat for more.", "--set KEY=VALUE"
    )
    encoder: str | None = option(
        "Also measure similarity of vectors: hashing (words and character n-grams), "
        "use-multilingual, model2vec:NAME, sentence-transformers:NAME, or openai-embeddings:NAME@URL (kept by "
        "--cache).",
        "ENCODER",
    )
    encoder_key_env: str | None = option("The environment variable that holds the key of the encoder's API.", "NAME")
    measures: tuple[str, ...] = options.measures(
        "A measure of answers, such as Faithfulness; repeat for more.  [default: all judged "
        "measures, and overlap where it is defined]"
    )


@answers.command(short_help="Evaluate the answers of a file.")
def evaluate(
    *,
    file: str = _file,
    judging: _Judging,
    values: _Values,
    dry_run: bool = option("Print calls and cost without calling the model."),
    out: Output = output_format("Show the measures of both stages and the limiting stage."),
    output: str | None = option("Also write the evaluations as JSON lines.", "-o, --output FILE"),
    saving: options.Saving = declare(settings={}, store=None),
) -> None:
    """Evaluate the answers of each system in FILE.

    Rules judge by comparing words, numbers, and negations; nothing is stored. With --url and
    --model, a model judges the items that have no verdict in the store yet, and its verdicts are
    stored: an interrupted command resumes. Verdicts of people (rankgauge serve) are used
    with --judge NAME or --person. Overlap with the reference is also shown.

    \b
    Examples:
      rankgauge answers evaluate answers.jsonl
      rankgauge answers evaluate answers.jsonl --reference questions.jsonl --full
      rankgauge answers evaluate answers.jsonl --verdicts people.jsonl -m Faithfulness
      rankgauge answers evaluate answers.jsonl --url http://localhost:8000/v1 --model small --dry-run
    """
    path = rankgauge.core.find_project_file()
    project = None if path is None else rankgauge.Project(path)
    saves = project is not None if saving.save is None else saving.save
    history = replace(saving, store=judging.store if saves else None).open(default=saves)
    check_writable(output)
    judged = _judged(file, judging, values, dry_run=dry_run, uses_store=saves)
    if dry_run:
        return
    evaluations = [system.evaluate(values.measures) for system in judged]
    shown = list(map(package.diagnose_answers, evaluations)) if out.full else evaluations
    if output is not None:
        write_report(output, "".join(f"{evaluation.to_json()}\n" for evaluation in evaluations))
    if history is not None:
        for evaluation, system in zip(evaluations, judged, strict=True):
            rows = system.answers.rows()
            saving.add(history, evaluation, settings=evaluation.settings, answers=rows, project=project)
    out.print(shown)
    out.print_next_step(rankgauge.core.next_step("answers evaluate"))


@answers.command(short_help="Decide whether a new prompt or model may replace the baseline.")
def gate(
    *,
    file: str = _file,
    judging: _Judging,
    values: _Values,
    rules: str | None = option(
        "A project file with rules in its table [gate].  [default: each -m and --criterion "
        f"({_PRIMARY} if there is none) with a margin of 0.02]",
        "FILE",
    ),
    baseline: str = option("The baseline to compare with.", "FILE", default="answers-baseline.json"),
    gating: options.Gating,
    page: str | None = options.gate_report,
    out: Output = output_format("Show rules, margins, and all losses.", None),
) -> int:
    """Compare the answers of FILE with a baseline: PASS, FAIL, or INCONCLUSIVE.

    A judge that is not calibrated, or makes too many errors to be usable, is rejected without
    --allow-uncalibrated. Measures of overlap need no judge. The exit codes are those of rankgauge
    gate.

    \b
    Examples:
      rankgauge answers gate v1.jsonl --calibration calibration.json --update-baseline
      rankgauge answers gate v2.jsonl --calibration calibration.json
    """
    own = [f"Criterion(name={name})" for name in judging.criteria]
    chosen = values.measures or ((_PRIMARY,) if not own else ())
    wanted = rankgauge.GateRules.of(rules or {"measures": {name: {"margin": 0.02} for name in (*chosen, *own)}})
    judged = _judged(file, judging, replace(values, measures=chosen))
    if len(judged) > 1:
        raise click.UsageError("FILE has several systems: name one with --system")
    evaluation = judged[0].evaluate(chosen)
    if gating.update_baseline:
        new_baseline = rankgauge.Baseline.from_evaluation(evaluation, max_failed=wanted.max_failed)
        write_baseline(new_baseline, baseline, wanted, force=gating.force)
        return 0
    result = rankgauge.gate(
        evaluation, rules=wanted, baseline=baseline, allow_uncalibrated=gating.allow_uncalibrated
    ).stamped()
    out.print(result, rankgauge.reports.Options(strict=gating.strict))
    if page:
        write_report(page, rankgauge.reports.gate_page(result))
        print_message(f"wrote {page}")
    gating.save_result(result)
    return result.exit_code(strict=gating.strict)


@answers.command(short_help="Compare a judge with human labels.")
def calibrate(
    *,
    file: str = _file,
    judging: _Judging,
    human: str | None = option(
        "Verdicts of people on all items of a random sample of the questions: a store, or a file "
        "with label, judge, and either key, or record, relation, row, and column.  [default: the store]",
        "FILE|STORE",
    ),
    output: str | None = option("Write the calibration to this file, for --calibration.", "-o, --output FILE"),
    measures: tuple[str, ...] = options.measures("A measure to correct for the errors of the judge; repeat for more."),
    seed: Count = option("The seed of the intervals of kappa and alpha.", default=0),
    out: Output = output_format("Show alpha, all intervals, and biases."),
) -> None:
    """Compare the verdicts of a judge on the answers of FILE with human verdicts.

    The result is used to correct means for the errors of the judge. Start with 100 labels.

    \b
    Examples:
      rankgauge answers calibrate answers.jsonl --human people.jsonl -o calibration.json
      rankgauge answers evaluate answers.jsonl --calibration calibration.json
    """
    check_writable(output)
    judged = _judged(file, judging, uses_store=True)
    sets = [system.answers for system in judged]
    verdicts = {verdict: None for system in judged for verdict in system.verdicts}
    people = _people(human or judging.store, judged, verdicts)
    calibration = package.calibrate(sets, verdicts, people, seed=seed)
    means = package.correct_means(sets, verdicts, people, measures or None)
    if output is not None:
        calibration.write(output)
    out.print(calibration)
    out.print_plain("\n")
    if out.format != "csv":  # a CSV file holds one table
        out.print(means)


@dataclass(frozen=True)
class _Judged:
    """Answers of a system with their verdicts."""

    answers: package.AnswerSet
    verdicts: Sequence[Any]
    judge: Mapping[str, Any] | None = None
    calibration: str | None = None
    human: Sequence[Any] = ()
    encoder: Any = None

    def evaluate(self, measures: Sequence[str]) -> package.AnswerEvaluation:
        """Return the values of measures."""
        arguments = {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}
        return package.evaluate_answers(measures=measures or None, **arguments)


def _judged(
    file: str, judging: _Judging, values: _Values | None = None, *, dry_run: bool = False, uses_store: bool = False
) -> list[_Judged]:
    """Return the judged answers of each system in a file; `uses_store`: also for other things than their verdicts."""
    person = values is not None and values.person
    chat, encoder = judging.model(person=person), None
    stored = judging.verdicts is None and (judging.judge is not None or person)
    key = None if values is None else values.encoder_key_env
    if values is not None and values.encoder:
        encoder = encoder_of(values.encoder, "--encoder", key_env=key, cache=chat.cache)
        if chat.url is None and chat.model is None:
            chat = replace(chat, cache=None)
    with chat.open() as model:
        if model is not None and judging.verdicts is not None:
            raise click.UsageError("a model adds verdicts to the store: omit --verdicts, or --url and --model")
        if model is None and judging.store and not (stored or uses_store):
            raise click.UsageError("--store has no use here without a model, --judge NAME, or --person")
        searches = judging.search is not None
        if model is None and (dry_run or judging.claims == "model" or judging.replicates > 1 or searches):
            raise click.UsageError(
                "--dry-run, --claims model, --replicates, and --search need a model: --url and --model"
            )
        if searches and judging.collection is None:
            raise click.UsageError("--search needs the documents: --collection FOLDER")
        with working(f"reading {file}"):
            sets = _read(file, judging)
        settings = settings_of({} if values is None else values.settings)
        measures = () if values is None else values.measures
        judge = None if model is None else package.ModelJudge(model, search=_search(judging, key))
        with working(f"judging {file}", shares=True):
            systems = [
                _judged_by(
                    judge,
                    replace(answer_set, settings=settings, criteria=judging.criteria),
                    measures,
                    judging,
                    stored=stored,
                    dry_run=dry_run,
                )
                for answer_set in sets
            ]
    human = values and values.human
    return [
        replace(
            system,
            judge={"person": True} if person else {},
            calibration=None if values is None else values.calibration,
            human=_people(human, systems, system.verdicts) if human else (),
            encoder=encoder,
        )
        for system in systems
    ]


def _people(human: str | None, judged: Sequence[_Judged], verdicts: Iterable[Any]) -> list[Any]:
    """Return the verdicts of people in a file or store, without those of the judge."""
    if (human or "").endswith(_ROWS):
        sets = [system.answers for system in judged]
        people = package.read_verdicts(human, sets)
    else:
        with package.VerdictStore(human) as store:
            people = [verdict for verdict in store.verdicts() if not verdict.prompt]  # models have prompts
    judges = {verdict.judge for verdict in verdicts}
    return [verdict for verdict in people if verdict.judge not in judges]


def _search(judging: _Judging, key: str | None) -> Callable[[str], list[package.Context]] | None:
    """Return the search function over the collection, or None without --search."""
    name, collection = judging.search, judging.collection
    if name is None or collection is None:
        return None
    from rankgauge import retrievers

    retriever = retrievers.BM25() if name == "bm25" else retrievers.Dense(encoder_of(name, "--search", key_env=key))
    documents = rankgauge.Collection.read(collection).documents
    with working(f"indexing {collection}"):
        retriever.index(documents.values())

    def find(question: str) -> list[package.Context]:
        [hits] = retriever.search([rankgauge.Query("", question)], _SEARCHED)
        return [package.Context(key, documents[key].text) for key, _ in hits]

    return find


def _texts(collection: str | None) -> Mapping[str, str] | None:
    if collection is None:
        return None
    return {key: document.text for key, document in rankgauge.Collection.read(collection).documents.items()}


def _read(file: str, judging: _Judging) -> tuple[package.AnswerSet, ...]:
    """Return the answers of a file, or those saved with an evaluation."""
    if rankgauge.core.is_short_name(file):
        return (package.AnswerSet.saved(rankgauge.History(), file),)
    return package.read_answers(
        file, system=judging.system, reference=judging.reference, texts=_texts(judging.collection)
    )


def _judged_by_rules(answers: package.AnswerSet) -> _Judged:
    judge = package.RuleJudge()
    items = {item.key: item for item in answers.items()}
    verdicts = [verdict for verdict in judge.judge(list(items.values())) if isinstance(verdict, package.Verdict)]
    return _with_verdicts(answers, verdicts, judge.name)


def _judged_by(
    judge: package.ModelJudge | None,
    answers: package.AnswerSet,
    measures: Sequence[str],
    judging: _Judging,
    *,
    stored: bool,
    dry_run: bool,
) -> _Judged:
    if judging.verdicts is not None:
        return _with_verdicts(answers, package.read_verdicts(judging.verdicts), judging.judge)
    if judge is None and not stored:
        if answers.criteria:
            raise click.UsageError(
                "rules cannot judge a --criterion: name a model (--url, --model), a --judge, or a file of verdicts"
            )
        return _judged_by_rules(answers)
    with package.VerdictStore(judging.store) as store:
        if judge is None:
            return _with_verdicts(answers, store.verdicts(), judging.judge)
        if judging.claims == "model":
            extracted = package.extract_claims(answers, judge.model, store, dry_run=dry_run)
            print_message(extracted.summary())
            answers = replace(answers, claims=extracted.claims)
        judged = package.judge_answers(
            answers,
            judge,
            store,
            measures=measures or package.DEFAULT_MEASURES,
            replicates=judging.replicates,
            dry_run=dry_run,
        )
        print_message(judged.summary())
        if judged.is_empty:  # bounds from 0 to 1 are no result
            raise rankgauge.InputError(
                f"no reply of the model can be used: {judged.failures[0]}",
                where="model",
                fix="check --url, --model, and --key-env, and run the command again",
            )
        if dry_run:
            return _Judged(answers, ())
        # People decide whether the collection can answer; see counted_labels.
        verdicts = [
            verdict
            for verdict in store.verdicts()
            if verdict.judge == judge.name or (not verdict.prompt and verdict.label in package.LABELS["answerability"])
        ]
        return _with_verdicts(answers, verdicts, None)


def _with_verdicts(answers: package.AnswerSet, verdicts: Sequence[Any], judge: str | None) -> _Judged:
    """Return the answers with the verdicts of one judge, or of all judges."""
    chosen = [verdict for verdict in verdicts if judge is None or verdict.judge == judge]
    if not chosen:
        known = ", ".join(dict.fromkeys(verdict.judge for verdict in verdicts))
        raise rankgauge.InputError(
            f"there are no verdicts of {judge or 'anyone'}",
            where="verdicts",
            fix=f"judges: {known}"
            if known
            else "judge answers first: rankgauge serve, or name a model (--url, --model)",
        )
    return _Judged(answers, chosen)
