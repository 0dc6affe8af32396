"""`judge_answers()`: obtain the verdicts that measures need, and store them."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from rankgauge.answers.evaluation import DEFAULT_MEASURES, answer_measures
from rankgauge.answers.judges import Judge, MissingVerdict, verdict_on_blank
from rankgauge.answers.model_judge import ModelJudge
from rankgauge.answers.scores import RELATIONS
from rankgauge.answers.store import VerdictStore, store_in_batches
from rankgauge.answers.verdicts import LABELS, AnswerSet, Item, Verdict
from rankgauge.core.arguments import integer
from rankgauge.core.progress import report
from rankgauge.core.text import keep, many
from rankgauge.errors import InputError
from rankgauge.llm import Usage
from rankgauge.rendering import Result, Table

_SHOWN = 3  # largest number of failure reasons to keep


@dataclass(frozen=True)
class AnswerJudging(Result):
    """Result of judging: numbers of needed, stored, and missing verdicts.

    Attributes:
        judge: The name of the judge.
        items: The number of verdicts needed: distinct items times replicates.
        before: The number of verdicts already in the store.
        labels: The number of new verdicts by relation and label.
        missing: The number of missing verdicts by failure code.
        demoted: The number of new verdicts whose label was lowered because they have no quote that
            occurs in the text.
        usage: Calls, tokens, and cost; estimated in a dry run.
        seconds: The duration.
        dry_run: Whether no request was sent.
        failures: The first reasons for missing verdicts.
        served: Model names reported by the server that differ from the requested name.
        blank: The number of verdicts on blank texts, which need no judge.
    """

    _attributes = "* judged"

    judge: str
    items: int
    before: int
    labels: Mapping[str, Mapping[str, int]]
    missing: Mapping[str, int]
    demoted: int
    usage: Usage
    seconds: float
    dry_run: bool = False
    failures: tuple[str, ...] = ()
    served: tuple[str, ...] = ()
    blank: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the judge has given none of its verdicts, neither now nor before."""
        return 0 < self.items - self.blank <= sum(self.missing.values())

    @property
    def judged(self) -> int:
        """The number of new verdicts."""
        return sum(sum(count.values()) for count in self.labels.values())

    def table(self) -> Table:
        """Return the numbers of items by outcome; the title has the cost and the first failure."""
        done = f"{many(self.judged, 'new verdict')}, {sum(self.missing.values())} missing"
        cost = f"{'estimated, without retries: ' if self.dry_run else ''}{self.usage}"
        return Table(
            ("what", "number"),
            keep(
                ("verdicts needed", self.items),
                ("already in the store", self.before),
                self.dry_run and ("to judge", self.items - self.before),
                self.dry_run and ("calls", self.usage.calls),
                *(
                    (f"{relation}: {label}", number)
                    for relation, count in self.labels.items()
                    for label, number in count.items()
                ),
                *((f"missing: {why}", number) for why, number in self.missing.items()),
                self.demoted and ("lowered: no valid quote", self.demoted),
            ),
            title=". ".join(
                keep(
                    f"{self.judge}: {'dry run, nothing was sent' if self.dry_run else done}",
                    self.usage != Usage() and cost,
                    *self.failures[:1],
                )
            ),
            notes=keep(
                self.dry_run
                and self.usage.calls
                and self.usage.cost is None
                and "the cost is unknown: give the model input_price and output_price",
                *self.failures[1:],
                self.missing
                and "means exclude questions that depend on missing verdicts; repeat the call to request them again",
                self.served and f"the server reports another model: {', '.join(self.served)}",
            ),
        )


def judge_answers(
    answers: AnswerSet,
    judge: Judge,
    store: VerdictStore,
    *,
    measures: Any = DEFAULT_MEASURES,
    replicates: int = 1,
    dry_run: bool = False,
) -> AnswerJudging:
    """Request the verdicts that measures need and the store lacks from a judge.

    An item is judged again if its text, the judge, or the version of the prompt has changed.
    Verdicts are stored as they arrive. Missing verdicts are counted, and requested again by the
    next call.

    Args:
        answers: The answers of one system.
        judge: A `ModelJudge`, a `CallableJudge`, a `RuleJudge`, or another `Judge`.
        store: The store of verdicts.
        measures: Names of the measures that will be computed.
        replicates: The number of verdicts per item; the most frequent label counts.
        dry_run: Whether to send no request and only estimate calls, tokens, and cost.

    Raises:
        UnknownName: If a measure is unknown.
        InputError: If the judge returns a verdict on an unknown item, or an invalid label.

    Example:
        >>> import tempfile
        >>> from rankgauge.answers import AnswerRecord, Context, RuleJudge
        >>> contexts = (Context("a", "The tower is 5 m high."), Context("b", "It opened in 1990."))
        >>> record = AnswerRecord("q1", "How high?", "It is 5 m high.", contexts)
        >>> store = VerdictStore(tempfile.mkdtemp() + "/verdicts.db")
        >>> answers = AnswerSet("a", (record,))
        >>> print(judge_answers(answers, RuleJudge(), store, measures="Faithfulness").summary())
        rules: 2 new verdicts, 0 missing
        >>> sorted(store.labels().values())
        ['not stated', 'supported']
    """
    began = time.monotonic()
    items = _items(answers, measures)
    known = {(verdict.key, verdict.prompt, verdict.replicate) for verdict in store.verdicts(judge.name)}
    todo = [
        {item.key: item for item in items if (item.key, judge.version(item.relation), replicate) not in known}
        for replicate in range(integer("replicates", replicates))
    ]
    texts = {item.key: (item.relation, item.record, item.target) for item in items}
    sent = sum(map(len, todo))
    done: list[MissingVerdict | None] = []  # None for a verdict
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    lowered: Counter[bool] = Counter()

    def verdicts(
        outcomes: Iterator[Verdict | MissingVerdict], waiting: dict[str, Item], replicate: int
    ) -> Generator[Verdict, None, None]:
        with closing(_checked(outcomes, waiting, judge)) as checked:
            for item, outcome in checked:
                if isinstance(outcome, Verdict):
                    labels[item.relation][outcome.label] += 1
                    lowered[outcome.quoted is False] += 1
                    yield replace(outcome, judge=judge.name, prompt=judge.version(item.relation), replicate=replicate)
                done.append(outcome if isinstance(outcome, MissingVerdict) else None)
                report(len(done), sent, "judged")

    model = judge if isinstance(judge, ModelJudge) else None
    start = None if model is None else model.model.usage()
    usage = Usage()
    if not dry_run:
        store.create()
        for replicate, waiting in enumerate(todo):
            new = verdicts(judge.judge(list(waiting.values()), replicate), waiting, replicate)
            store_in_batches(new, store.add, lambda verdict: texts[verdict.key])
        if model is not None and start is not None:
            usage = model.model.usage() - start
    elif model is not None:
        parts = [model.estimate(list(some.values()), n) for n, some in enumerate(todo)]
        usage = sum(parts[1:], parts[0])
    missing = [outcome for outcome in done if outcome is not None]
    failures = dict.fromkeys(f"{outcome.code}: {outcome.reason}" for outcome in missing if outcome.reason)
    return AnswerJudging(
        judge.name,
        len(items) * replicates,
        len(items) * replicates - sent,
        {relation: dict(count) for relation, count in sorted(labels.items())},
        dict(Counter(outcome.code for outcome in missing)),
        lowered[True],
        usage,
        time.monotonic() - began,
        dry_run,
        tuple(failures)[:_SHOWN],
        () if model is None else model.other_models(),
        replicates * sum(verdict_on_blank(item, judge.name, "") is not None for item in items),
    )


def _items(answers: AnswerSet, measures: Any) -> list[Item]:
    """Return the distinct items of the relations that the measures need."""
    relations = {
        relation
        for measure in answer_measures(measures)
        for relation in RELATIONS.get(measure.name, ())  # the other measures need no verdicts
    } | {"criterion"}
    distinct: dict[str, Item] = {}
    for item in answers.items():
        if item.relation in relations:
            distinct.setdefault(item.key, item)
    return list(distinct.values())


def _checked(
    outcomes: Iterator[Verdict | MissingVerdict], waiting: dict[str, Item], judge: Judge
) -> Generator[tuple[Item, Verdict | MissingVerdict], None, None]:
    """Yield each item with its outcome; items without an outcome have a missing verdict."""
    # Stop the requests of the judge, also if the caller stops early.
    with closing(outcomes) if isinstance(outcomes, Generator) else nullcontext():
        for outcome in outcomes:
            item = waiting.pop(outcome.key, None)
            if item is None:
                raise InputError(
                    f"an outcome for {outcome.key!r:.20}, which is not an item to judge or already has one",
                    where=judge.name,
                    fix="yield one outcome per item key",
                )
            if isinstance(outcome, Verdict) and outcome.label not in LABELS[item.relation]:
                raise InputError(
                    f"{outcome.label!r:.40} is not a verdict on {item.relation}",
                    where=item.key[:12],
                    fix=f"choose one of: {', '.join(LABELS[item.relation])}",
                )
            yield item, outcome
    for item in waiting.values():
        yield item, MissingVerdict(item.key, "no verdict", "the judge did not return it")
