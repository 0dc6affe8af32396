"""``rankgauge answers``: evaluate generated answers and find the stage that limits them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import chat_model, encoder_of, settings_of
from rankgauge.cli.output import (
    check_writable,
    print_message,
    print_result,
    print_text,
    quiet,
    working,
    write_baseline,
    write_report,
)

if TYPE_CHECKING:
    from rankgauge.answers import AnswerSet, Context

_ROWS = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
_PRIMARY = "Completeness"
_SEARCHED = 10  # documents used to judge whether the collection can answer a question


@click.group(short_help="Evaluate generated answers, and find the limiting stage.")
def answers() -> None:
    """Evaluate the answers of a RAG system, and find the stage that limits them.

    FILE has a record for each question: question, contexts, answer, reference. Field names of
    ragas, deepeval, RAGChecker, TREC RAG, and OpenInference also work.

    \b
    Examples:
      rankgauge answers demo
      rankgauge answers evaluate answers.jsonl --reference questions.jsonl
    """


def _criteria_of(
    context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, str]:
    """Return criteria from NAME=WORDING, or NAME=@FILE with the wording in a file."""
    from rankgauge.core.files import read_text

    found: dict[str, str] = {}
    for pair in pairs:
        name, _, wording = pair.partition("=")
        if wording.startswith("@"):
            wording = read_text(wording[1:])
        if not name or not wording.strip() or name in found:
            raise click.BadParameter(
                f"got {pair!r:.80}, expected NAME=WORDING or NAME=@FILE, each name once",
                context, parameter,
            )  # fmt: skip
        found[name] = wording.strip()
    return found


_criteria = click.option(
    "--criterion", "criteria", multiple=True, metavar="NAME=WORDING", callback=_criteria_of,
    help="A criterion in words, judged as the measure Criterion(name=NAME): "
    "polite='The answer is polite.' or polite=@FILE; repeat for more.",
)  # fmt: skip


# Options of answers and judges, used by `_judged`.
_inputs = options.combined(
    click.option(
        "--reference", metavar="FILE",
        help="Questions with reference answers and other fields, joined by id.",
    ),
    click.option("--system", metavar="NAME", help="The system to use, if FILE has several."),
    options.collection("The texts of the contexts, if FILE has only their ids."),
    click.option(
        "--verdicts", metavar="STORE|FILE",
        help="A store of verdicts (SQLite or postgresql://...), to which the model adds verdicts; "
        "or a file of verdicts with key, label, and judge.  "
        "[default: judge by rules that compare words]",
    ),
    click.option("--judge", metavar="NAME", help="Use only the verdicts of this judge."),
    options.language_model,
    click.option(
        "--claims", type=click.Choice(["sentences", "model"]), default="sentences",
        show_default=True, help="The claims: sentences, or extracted by the model.",
    ),
    click.option(
        "--search", metavar="RETRIEVER",
        help="Have the model also judge whether the first 10 documents that RETRIEVER finds in "
        "--collection answer a question. RETRIEVER is bm25 or an ENCODER, such as hashing (see "
        "--encoder).",
    ),
    click.option(
        "--replicates", type=click.IntRange(1), default=1, show_default=True, metavar="N",
        help="Have the model judge each item N times; the majority label counts.",
    ),
    _criteria,
)  # fmt: skip


# Options of measures and of the calibration of the judge.
_values = options.combined(
    click.option(
        "--person", is_flag=True, help="People gave the verdicts: no calibration is needed."
    ),
    click.option(
        "--calibration", metavar="FILE", help="The calibration, written by calibrate -o."
    ),
    click.option(
        "--set", "pairs", multiple=True, metavar="KEY=VALUE",
        help="A setting of the system, such as prompt=2 or retrieval=bm25; repeat for more.",
    ),
    click.option(
        "--encoder", metavar="ENCODER",
        help="Also measure similarity of vectors: hashing (words and character n-grams), "
        "model2vec:NAME, sentence-transformers:NAME, or openai-embeddings:NAME@URL (kept by "
        "--cache).",
    ),
    click.option(
        "--encoder-key-env", metavar="NAME",
        help="The environment variable that holds the key of the encoder's API.",
    ),
    options.measures(
        "A measure of answers, such as Faithfulness; repeat for more.  [default: all judged "
        "measures, and overlap where it is defined]"
    ),
)  # fmt: skip


@answers.command(short_help="Evaluate the answers of a file.")
@click.argument("file", metavar="FILE")
@_inputs
@_values
@click.option("--dry-run", is_flag=True, help="Print calls and cost without calling the model.")
@click.option(
    "--full", is_flag=True, help="Show the measures of both stages and the limiting stage."
)
@options.output_format()
@click.option("-o", "--output", metavar="FILE", help="Also write the evaluations as JSON lines.")
@options.save
@options.store
@options.label
def evaluate(
    *,
    file: str,
    measures: tuple[str, ...],
    dry_run: bool,
    full: bool,
    format: str,
    output: str | None,
    save: bool,
    store: str | None,
    label: str,
    **given: Any,
) -> None:
    """Evaluate the answers of each system in FILE.

    Without a language model, rules judge by comparing words, numbers, and negations. With --url and
    --model, a model judges the items that are not in the store yet; an interrupted command resumes.
    Overlap with the reference is also shown.

    \b
    Examples:
      rankgauge answers evaluate answers.jsonl
      rankgauge answers evaluate answers.jsonl --reference questions.jsonl --full
      rankgauge answers evaluate answers.jsonl --verdicts people.jsonl -m Faithfulness
      rankgauge answers evaluate answers.jsonl --url http://localhost:8000/v1 --model small \\
          --verdicts verdicts.db --dry-run
    """
    if (store or label) and not save:
        raise click.UsageError("--history and --label need --save")
    if output is not None:
        check_writable(output)
    with _judged(file, measures, given, dry_run=dry_run) as judged:
        if dry_run:
            return
        found = [each.evaluate(measures) for each in judged]
        shown = [each.diagnose(measures) for each in judged] if full else found
    chosen = rankgauge.reports.Options(full=full)
    if output is not None:
        write_report(output, "".join(f"{each.to_json()}\n" for each in found))
    if save:
        history = rankgauge.History.open(store)
        for each in found:
            entry = history.add(each, label=label, settings=dict(each.settings))
            print_message(f"saved as {entry.id} in {history.where}")
    print_result(shown, format, chosen)
    if format == "table" and not full and not quiet():
        print_text(f"Next step: {rankgauge.core.next_step('answers evaluate')}\n")


@answers.command(short_help="Decide whether a new prompt or model may replace the baseline.")
@click.argument("file", metavar="FILE")
@_inputs
@_values
@click.option(
    "--rules",
    metavar="FILE",
    help=f"A TOML file of rules.  [default: each -m and --criterion ({_PRIMARY} if there is none) "
    "with a margin of 0.02]",
)
@click.option(
    "--baseline",
    metavar="FILE",
    default="answers-baseline.json",
    show_default=True,
    help="The baseline to compare with.",
)
@options.update_baseline
@click.option("--strict", is_flag=True, help="Exit with 3 if the verdict is INCONCLUSIVE.")
@options.gate_report
@options.quiet
@options.full("Show rules, margins, and all losses.")
@click.option(
    "--allow-uncalibrated",
    is_flag=True,
    help="Accept a judge that was not calibrated.",
)
def gate(
    *,
    file: str,
    measures: tuple[str, ...],
    rules: str | None,
    baseline: str,
    update_baseline: bool,
    force: bool,
    strict: bool,
    allow_uncalibrated: bool,
    page: str | None,
    full: bool,
    **given: Any,
) -> int:
    """Compare the answers of FILE with a baseline: PASS, FAIL, or INCONCLUSIVE.

    A judge that was not calibrated against people is rejected without --allow-uncalibrated.
    Measures of overlap need no judge. The exit codes are those of rankgauge gate.

    \b
    Examples:
      rankgauge answers gate v1.jsonl --calibration calibration.json --update-baseline
      rankgauge answers gate v2.jsonl --calibration calibration.json
    """
    own = [f"Criterion(name={name})" for name in given["criteria"]]
    chosen = measures or ((_PRIMARY,) if not own else ())
    wanted = rankgauge.GateRules.of(
        rules or {"measures": {name: {"margin": 0.02} for name in (*chosen, *own)}}
    )
    with _judged(file, chosen, given) as judged:
        if len(judged) > 1:
            raise click.UsageError("FILE has several systems: name one with --system")
        found = judged[0].evaluate(chosen)
    if update_baseline:
        made = rankgauge.Baseline.from_evaluation(found)
        write_baseline(made, baseline, wanted, force=force)
        return 0
    result = rankgauge.gate(
        found, rules=wanted, baseline=baseline, allow_uncalibrated=allow_uncalibrated
    )
    print_result(result, "table", rankgauge.reports.Options(strict=strict, full=full))
    if page:
        write_report(page, rankgauge.reports.gate_page(result))
        print_message(f"wrote {page}")
    return result.exit_code(strict=strict)


@answers.command(short_help="Compare a judge with human labels.")
@click.argument("file", metavar="FILE")
@_inputs
@click.option(
    "--human",
    metavar="FILE|STORE",
    required=True,
    help="Verdicts of people on all items of a random sample of the questions: a store, or a file "
    "with label, judge, and either key, or record, relation, row, and column.",
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write the calibration to this file, for --calibration."
)
@options.measures("A measure to correct for the errors of the judge; repeat for more.")
@options.seed("The seed of the intervals of kappa and alpha.")
@options.full("Show alpha, all intervals, and biases.")
@options.output_format()
def calibrate(
    *,
    file: str,
    human: str,
    output: str | None,
    measures: tuple[str, ...],
    seed: int,
    full: bool,
    format: str,
    **given: Any,
) -> None:
    """Compare the verdicts of a judge on the answers of FILE with human verdicts.

    The result is used to correct means for the errors of the judge. Start with 100 labels.

    \b
    Examples:
      rankgauge answers calibrate answers.jsonl --human people.jsonl -o calibration.json
      rankgauge answers evaluate answers.jsonl --calibration calibration.json
    """
    from rankgauge import answers as package

    if output is not None:
        check_writable(output)
    with _judged(file, (), given) as judged:
        sets, claims, criteria = (
            [each.answers for each in judged],
            judged[0].claims,
            judged[0].criteria,
        )
        verdicts = {verdict: None for each in judged for verdict in each.verdicts}
        if human.endswith(_ROWS):
            people = package.read_verdicts(human, sets, claims=claims, criteria=criteria)
        else:
            with package.VerdictStore(human) as store:
                people = store.verdicts()
        judges = {verdict.judge for verdict in verdicts}
        people = [verdict for verdict in people if verdict.judge not in judges]
        found = package.calibrate(
            sets, verdicts, people, claims=claims, criteria=criteria, seed=seed
        )
        means = package.correct_means(sets, verdicts, people, measures or None, claims=claims)
    if output is not None:
        found.write(output)
    chosen = rankgauge.reports.Options(full=full)
    print_result(found, format, chosen)
    if format in {"table", "markdown"}:
        print_text("\n")
    if format != "csv":  # a CSV file holds one table
        print_result(means, format, chosen)


@answers.command(short_help="Open a page on which a person gives verdicts.")
@click.argument("file", metavar="FILE")
@click.option(
    "--reference", metavar="FILE",
    help="Questions with reference answers and other fields, joined by id.",
)  # fmt: skip
@options.collection("The texts of the contexts, if FILE has only their ids.")
@click.option("--verdicts", metavar="STORE", required=True, help="The store of the verdicts.")
@click.option("--person", metavar="NAME", help="Your name.  [default: the name of your account]")
@click.option(
    "--relation", "relations", multiple=True, metavar="NAME",
    help="The relation to judge, such as citation-context; repeat for more.  [default: "
    "answer-context and reference-answer]",
)  # fmt: skip
@_criteria
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
    help="The port to listen on; 0 chooses a free one.",
)  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
def label(
    *,
    file: str,
    verdicts: str,
    person: str | None,
    relations: tuple[str, ...],
    criteria: Mapping[str, str],
    host: str,
    port: int,
    **own: str | None,
) -> None:
    """Open a page that shows one claim at a time with its context, and a key for each label.

    Verdicts are stored under your name; those of other judges are not shown. Ctrl-C stops the
    command; start it again to continue.

    \b
    Examples:
      rankgauge answers label answers.jsonl --verdicts people.db
      rankgauge answers calibrate answers.jsonl --human people.db -o calibration.json
    """
    import getpass
    from importlib.util import find_spec

    from rankgauge.answers import VerdictStore, read_answers

    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise rankgauge.MissingExtra(
            "the page needs Starlette and uvicorn, which are not installed",
            fix="pip install 'rankgauge[web]'",
        )
    from rankgauge.web import label_answers

    sets = read_answers(file, reference=own["reference"], texts=_texts(own))
    with VerdictStore(verdicts) as store:
        label_answers(
            sets, store, person or getpass.getuser(), host=host, port=port, echo=print_message,
            relations=relations or (() if criteria else ("answer-context", "reference-answer")),
            criteria=criteria,
        )  # fmt: skip


@answers.command(short_help="Evaluate the sample: two prompts, judged by rules.")
@click.option("--full", is_flag=True, help="Show all measures, causes, and groups of each prompt.")
@options.output_format()
def demo(*, full: bool, format: str) -> None:
    """Compare the answers of two prompts to 20 questions about the bundled sample.

    Rules judge the answers. The output shows the measures of both stages, and the stage that limits
    each prompt.
    """
    from rankgauge.sample import sample_path

    known = str(sample_path("answers/questions.jsonl"))
    given = dict.fromkeys(("system", "collection", "verdicts", "judge", "url", "model"))
    shown = []
    for prompt in ("1", "2"):
        file = str(sample_path(f"answers/prompt-{prompt}.jsonl"))
        pairs = ("retrieval=bm25", f"prompt={prompt}")
        asked: dict[str, Any] = {**given, "reference": known, "pairs": pairs}
        with _judged(file, (), asked | {"claims": "sentences", "replicates": 1}) as judged:
            shown += [each.diagnose(()) for each in judged]
    print_result(shown, format, rankgauge.reports.Options(full=full))


@dataclass(frozen=True)
class _Judged:
    """Answers of a system with their verdicts and claims."""

    answers: AnswerSet
    verdicts: Sequence[Any]
    claims: Callable[[Any], Any]
    judge: Mapping[str, Any] | None = None
    calibration: str | None = None
    criteria: Mapping[str, str] = field(default_factory=dict)
    encoder: Any = None

    def evaluate(self, measures: Sequence[str]) -> Any:
        """Return the evaluation of the answers."""
        from rankgauge.answers import evaluate_answers

        return evaluate_answers(
            self.answers, self.verdicts, measures or None, claims=self.claims, judge=self.judge,
            calibration=self.calibration, criteria=self.criteria, encoder=self.encoder,
        )  # fmt: skip

    def diagnose(self, measures: Sequence[str]) -> Any:
        """Return the diagnosis of retrieval and generation."""
        from rankgauge.answers import diagnose_answers

        return diagnose_answers(
            self.answers, self.verdicts, measures or None, claims=self.claims, judge=self.judge,
            calibration=self.calibration, criteria=self.criteria, encoder=self.encoder,
        )  # fmt: skip


@contextmanager
def _judged(
    file: str, measures: Sequence[str], given: dict[str, Any], *, dry_run: bool = False
) -> Iterator[list[_Judged]]:
    """Yield the judged answers of each system in a file."""
    from rankgauge.answers import read_answers

    parts = (
        "reference", "system", "collection", "verdicts", "judge", "claims", "replicates",
        "criteria", "pairs", "person", "calibration", "encoder", "encoder_key_env", "search",
    )  # fmt: skip
    own = {name: given.pop(name, None) for name in parts}
    encoder = _encoder(own, given) if own["encoder"] else None
    with chat_model(given) as model:
        if model is not None and (own["verdicts"] or "").endswith(_ROWS):
            raise click.UsageError("a model needs a store of verdicts: --verdicts verdicts.db")
        asks = own["claims"] == "model" or own["replicates"] > 1 or own["search"] is not None
        if model is None and (dry_run or asks):
            raise click.UsageError(
                "--dry-run, --claims model, --replicates, and --search need a model: --url and "
                "--model"
            )
        if own["search"] is not None and own["collection"] is None:
            raise click.UsageError("--search needs the documents: --collection FOLDER")
        if model is not None and own["verdicts"] is None:
            raise click.UsageError("name the store for the model's verdicts: --verdicts FILE")
        with working(f"reading {file}"):
            sets = read_answers(
                file, system=own["system"], reference=own["reference"], texts=_texts(own)
            )
        settings = settings_of(own["pairs"] or ())
        with working(f"judging {file}"):
            found = [
                _judged_by(model, replace(each, settings=settings), measures, own, dry_run=dry_run)
                for each in sets
            ]
    person = {"person": True} if own["person"] else {}
    yield [
        replace(
            each, judge=person, calibration=own["calibration"], criteria=own["criteria"] or {},
            encoder=encoder,
        )
        for each in found
    ]  # fmt: skip


def _encoder(own: Mapping[str, Any], given: dict[str, Any]) -> Any:
    """Return the encoder; without a language model it has a separate cache."""
    cache = given["cache"]
    if given["url"] is None and given["model"] is None:
        given["cache"] = None
    return encoder_of(own["encoder"], "--encoder", key_env=own["encoder_key_env"], cache=cache)


def _search(own: Mapping[str, Any]) -> Callable[[str], list[Context]] | None:
    """Return the search function over the collection, or None without --search."""
    name = own["search"]
    if name is None:
        return None
    from rankgauge import retrievers
    from rankgauge.answers import Context

    retriever = (
        retrievers.BM25()
        if name == "bm25"
        else retrievers.Dense(encoder_of(name, "--search", key_env=own["encoder_key_env"]))
    )
    documents = rankgauge.Collection.read(own["collection"]).documents
    with working(f"indexing {own['collection']}"):
        retriever.index(documents.values())

    def find(question: str) -> list[Context]:
        [hits] = retriever.search([rankgauge.Query("", question)], _SEARCHED)
        return [Context(key, documents[key].text) for key, _ in hits]

    return find


def _texts(own: Mapping[str, Any]) -> Mapping[str, str] | None:
    if own["collection"] is None:
        return None
    documents = rankgauge.Collection.read(own["collection"]).documents
    return {key: document.text for key, document in documents.items()}


def _judged_by(
    model: Any,
    answers: AnswerSet,
    measures: Sequence[str],
    own: Mapping[str, Any],
    *,
    dry_run: bool,
) -> _Judged:
    from rankgauge import answers as package

    where, criteria = own["verdicts"], own["criteria"] or {}
    if where is None and criteria:
        raise click.UsageError(
            "rules cannot judge a --criterion: name a model (--url, --model, --verdicts STORE), "
            "or verdicts of people (--verdicts)"
        )
    if where is None:
        judge = package.RuleJudge()
        items = {
            item.key: item
            for record in answers
            for item in package.items_of(record, package.sentence_claims(record))
        }
        outcomes = judge.judge(list(items.values()))
        found = [each for each in outcomes if isinstance(each, package.Verdict)]
        return _with_verdicts(answers, found, judge.name)
    if where.endswith(_ROWS):
        found = package.read_verdicts(where)
        return _with_verdicts(answers, found, own["judge"])
    claims = package.sentence_claims
    with package.VerdictStore(where) as store:
        name = own["judge"]
        if model is not None:
            asked = package.ModelJudge(model, search=_search(own))
            name = asked.name
            if own["claims"] == "model":
                extracted = package.extract_claims(answers, model, store, dry_run=dry_run)
                print_message(extracted.summary())
                claims = extracted.claims
            judged = package.judge_answers(
                answers, asked, store, measures=measures or package.DEFAULT_MEASURES,
                claims=claims, criteria=criteria, replicates=own["replicates"], dry_run=dry_run,
            )  # fmt: skip
            print_message(judged.summary())
            if judged.is_empty:  # bounds from 0 to 1 are no result
                raise rankgauge.InputError(
                    f"no reply of the model can be used: {judged.failures[0]}", where="model",
                    fix="check --url, --model, and --key-env, and run the command again",
                )  # fmt: skip
            if dry_run:
                return _Judged(answers, (), claims)
            # People decide whether the collection can answer; see counted_labels.
            answerability = package.LABELS["answerability"]
            found = [
                each
                for each in store.verdicts()
                if each.judge == name or (not each.prompt and each.label in answerability)
            ]
            return _with_verdicts(answers, found, None, claims)
        return _with_verdicts(answers, store.verdicts(), name, claims)


def _with_verdicts(
    answers: AnswerSet, verdicts: Sequence[Any], judge: str | None, claims: Any = None
) -> _Judged:
    """Return the answers with the verdicts of one judge, or of all judges."""
    from rankgauge.answers import sentence_claims

    chosen = [each for each in verdicts if judge is None or each.judge == judge]
    if not chosen:
        known = ", ".join(dict.fromkeys(each.judge for each in verdicts)) or "none"
        raise rankgauge.InputError(
            f"there are no verdicts of {judge or 'anyone'}", where="verdicts",
            fix=f"judges: {known}",
        )  # fmt: skip
    return _Judged(answers, chosen, claims or sentence_claims)
