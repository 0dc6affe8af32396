"""`ProjectState`: the events of a judging project in memory, and the next task of a judge.

The next task is a hidden test, a repeat, a shared set, or the most informative set.
"""

from __future__ import annotations

import math
import random
import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import combinations

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.judging.events import (
    Answer,
    Choice,
    GoldTask,
    Judge,
    Judgment,
    Presentation,
    Question,
    Settings,
    judgments_of,
    next_pair,
)
from rankgauge.judging.store import Transaction
from rankgauge.stats import NONE, PlackettLuce, choice_homogeneity, fit_plackett_luce, holm, ranking_stages

# Number of random sets of documents from which the most informative is selected.
_SETS = 60
# A document is resolved if it was shown this often and its probability of relevance is outside
# these bounds.
_UNSURE, _VIEWS = (0.05, 0.95), 2
# Shares of random answers, and of "none" without reading, for which intervals and resolution hold:
# docs/explain/judging-simulations.md.
CARELESS = ((0.0, 0.0), (0.2, 0.0), (0.0, 0.1))
_SPLIT = 0.05  # level of the test of homogeneity of the judges of a question


@dataclass(frozen=True, slots=True)
class QuestionState:
    """State of a question, from which the next task is selected.

    Attributes:
        documents: The pool.
        judgments: For each counted judgment, the documents shown and those chosen, best first
            (empty: none was chosen; None: all were graded).
        pending: The sets of documents currently reserved for judges.
        seen: The sets already shown to the requesting judge.
        judges: The judge of each judgment.
    """

    documents: tuple[str, ...]
    judgments: tuple[tuple[tuple[str, ...], tuple[str, ...] | None], ...] = ()
    pending: tuple[frozenset[str], ...] = ()
    seen: frozenset[frozenset[str]] = frozenset()
    judges: tuple[str, ...] = ()

    @property
    def shown(self) -> Counter[str]:
        """The number of times each document was shown."""
        return Counter(document for documents, _ in self.judgments for document in documents)


def fit_question(
    state: QuestionState, *, prior_sd: float = 3.0, careless: tuple[float, float] = (0.0, 0.0)
) -> tuple[tuple[str, ...], PlackettLuce]:
    """Fit a Plackett-Luce model to the choices of a question.

    Args:
        state: The pool and the judgments.
        prior_sd: As in ``rankgauge.stats.fit_plackett_luce``.
        careless: As in ``rankgauge.stats.fit_plackett_luce``.

    Returns:
        The documents of the pool, followed by others that were shown; and the model of these
        documents, in this order.

    Example:
        >>> names, fit = fit_question(QuestionState(("a", "b"), ((("a", "b"), ("b",)),)))
        >>> names, fit.relevance.round(2).tolist()
        (('a', 'b'), [0.35, 0.86])
    """
    names, offered, chosen, _ = _stages(state)
    return names, fit_plackett_luce(len(names), offered, chosen, prior_sd=prior_sd, careless=careless)


def split_documents(state: QuestionState) -> tuple[str, ...]:
    """Return the documents that some judges of a question choose more often than others.

    The test is ``rankgauge.stats.choice_homogeneity`` at the 5% level, with Holm's correction over
    the documents of the question. It needs documents that two judges saw twice or more.

    Example:
        >>> sets = ((("a",), ("a",)), (("a",), ())) * 6
        >>> split_documents(QuestionState(("a",), sets, judges=("ann", "bob") * 6))
        ('a',)
        >>> split_documents(QuestionState(("a",), sets, judges=("ann", "ann", "bob", "bob") * 3))
        ()
    """
    names, offered, chosen, judges = _stages(state)
    if len(set(judges)) < 2:
        return ()
    fit = fit_plackett_luce(len(names), offered, chosen)
    p_values = choice_homogeneity(fit, offered, chosen, judges)
    (tested,) = np.nonzero(~np.isnan(p_values))
    return tuple(names[at] for at in tested[holm(p_values[tested]) <= _SPLIT]) if len(tested) else ()


def _stages(state: QuestionState) -> tuple[tuple[str, ...], IntArray, list[int], list[str]]:
    """Return documents, and the sets, choices, and judges of all stages of the choices."""
    names = tuple(dict.fromkeys([*state.documents, *state.shown]))
    index = {name: at for at, name in enumerate(names)}
    offered: list[list[int]] = []
    chosen: list[int] = []
    judges: list[str] = []
    for (documents, best), judge in zip(state.judgments, state.judges or [""] * len(state.judgments), strict=True):
        if best is not None:
            sets, picks = ranking_stages(
                [index[document] for document in documents], [index[document] for document in best] or [NONE]
            )
            offered += sets
            chosen += picks
            judges += [judge] * len(picks)
    padded = np.full((len(offered), max(map(len, offered), default=0)), NONE)
    for row, items in enumerate(offered):
        padded[row, : len(items)] = items
    return names, padded, chosen, judges


def next_documents(
    state: QuestionState, shown: int, *, views: int, at_random: bool, rng: random.Random
) -> tuple[str, ...] | None:
    """Return the documents of the next task, in arbitrary order, or None if no set is left.

    Until each document was shown `views` times, the least shown documents are selected. After that,
    the D-optimal set of 60 random sets is selected: the set with the largest log det(I + F S),
    where F is the expected information of the choice and S the posterior covariance of the
    utilities. Pending choices are included with their expected information. A set is never shown
    to the same judge twice.

    Args:
        state: The state of the question.
        shown: Number of documents in a task.
        views: Presentations of each document before sets are chosen by expected information.
        at_random: Whether to draw the documents at random, for overlap and audits of the model.
        rng: The random generator.

    Example:
        >>> import random
        >>> state = QuestionState(("a", "b", "c"), ((("a", "b"), ("b",)),))
        >>> sorted(next_documents(state, 2, views=1, at_random=False, rng=random.Random(0)))
        ['a', 'c']
    """
    shown = min(shown, len(state.documents))
    if not shown:
        return None
    # Random sets that this judge has not seen.
    if math.comb(len(state.documents), shown) <= _SETS:
        sets = list(combinations(state.documents, shown))
        rng.shuffle(sets)
    else:
        sets = [tuple(rng.sample(state.documents, shown)) for _ in range(_SETS)]
    sets = [documents for documents in sets if frozenset(documents) not in state.seen]
    if not sets or at_random:
        return sets[0] if sets else None
    count = state.shown
    count.update(document for items in state.pending for document in items)
    fewest = min(count[document] for document in state.documents)
    if fewest < views or not any(best is not None for _, best in state.judgments):
        for _ in range(_SETS):
            order = rng.sample(state.documents, len(state.documents))
            least = tuple(sorted(order, key=lambda document: count[document])[:shown])
            if frozenset(least) not in state.seen:
                return least
        return min(sets, key=lambda documents: sum(count[name] for name in documents))
    names, fit = fit_question(state)
    index = {name: at for at, name in enumerate(names)}
    model = fit.expecting([[index[document] for document in items] for items in state.pending])
    gain = model.information([[index[document] for document in items] for items in sets])
    # Rounded, so that sets tie on every machine or on none.
    return sets[int(gain.round(9).argmax())]


def is_resolved(state: QuestionState) -> bool:
    """Return whether the relevance of each document is known, so that no more tasks are needed.

    The relevance of a document is known if it was shown at least twice and its posterior
    probability of a relevance above 0.5 is below 0.05 or above 0.95, on the same side whether no
    answer is careless, 20% of them are random, or 10% are "none" without reading. Judges may still
    be divided: see :func:`split_documents`.

    Example:
        >>> is_resolved(QuestionState(("a",), ((("a",), ("a",)),) * 9))
        True
    """
    count = state.shown
    if min((count[document] for document in state.documents), default=_VIEWS) < _VIEWS:
        return False
    low, high = _UNSURE
    sides = set()
    for careless in CARELESS:
        above = fit_question(state, careless=careless)[1].probability_above()[: len(state.documents)]
        if ((low <= above) & (above <= high)).any():
            return False
        sides.add(tuple(above > high))
    return len(sides) == 1


# Purposes of presentations that are never the next task of a judge.
_NO_TASKS = {"adjudication", "import", "comparison"}


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """Counted judgments of a question, its split documents, and the largest number of remaining tasks."""

    state: QuestionState
    split: tuple[str, ...]
    left: int


class ProjectState:
    """In-memory state of a project, updated with new events from the store."""

    def __init__(self) -> None:
        self.marks: object = None
        self.settings = Settings()
        self.guideline = 1
        self.questions: dict[str, Question] = {}
        self.pools: dict[str, tuple[str, ...]] = {}
        self.gold: list[GoldTask] = []
        self.judges: dict[str, Judge] = {}
        self.presentations: dict[str, Presentation] = {}
        self.by_question: dict[str, list[Presentation]] = defaultdict(list)
        self.by_judge: dict[str, list[Presentation]] = defaultdict(list)
        self.votes: Counter[frozenset[str]] = Counter()
        self.answers: dict[str, Answer] = {}
        self.latest: dict[str, Choice] = {}
        self.unfinished: dict[str, Presentation] = {}
        # The finished tasks (or votes: True) of each judge, most recent last.
        self.done: dict[tuple[str, bool], dict[str, None]] = defaultdict(dict)
        # By question and the documents shown together.
        self.overlaps: dict[tuple[str, frozenset[str]], list[Presentation]] = defaultdict(list)
        self.presented = 0
        self.chosen = 0
        self._known: dict[str, KnownQuestion] = {}

    def update(self, stored: Transaction) -> None:
        """Read the contents if they changed, and the events stored since the last call."""
        marks = stored.marks()
        if marks != self.marks:
            settings = stored.settings()
            judges = stored.judges()
            # Cached questions remain valid if judges are only added and the settings are the same.
            same = settings == self.settings and self.judges.items() <= judges.items()
            self.settings, self.judges = settings, judges
            self.guideline = (stored.version("guideline") or (1, ""))[0]
            self.questions = {name: question for name, question in stored.questions().items() if not question.withdrawn}
            pools: dict[str, list[str]] = defaultdict(list)
            for candidate in stored.candidates():
                pools[candidate.question].append(candidate.document)
            self.pools = {name: tuple(pools[name]) for name in self.questions if pools[name]}
            self.gold = stored.gold()
            self.marks = marks
            self._known = {
                name: known
                for name, known in self._known.items()
                if same and known.state.documents == self.pools.get(name)
            }
        if stored.count("answers") != len(self.answers):
            self.answers = stored.answers()
        for shown in stored.presentations(self.presented):
            self._add_presentation(shown)
        for choice in stored.choices(self.chosen):
            self._add_choice(choice)

    def _add_presentation(self, shown: Presentation) -> None:
        self.presentations[shown.id] = shown
        self.presented = shown.sequence
        self.by_judge[shown.judge].append(shown)
        if shown.mode == "answers":
            self.votes[shown.items] += 1
            return
        self.by_question[shown.question].append(shown)
        if shown.purpose not in _NO_TASKS:
            self.unfinished[shown.id] = shown
        if shown.purpose == "overlap":
            self.overlaps[shown.question, shown.items].append(shown)

    def _add_choice(self, choice: Choice) -> None:
        shown = self.presentations[choice.presentation]
        self.latest[shown.id] = choice
        self.chosen = choice.sequence
        self._known.pop(shown.question, None)
        vote = shown.mode == "answers"
        if shown.purpose in _NO_TASKS and not vote:
            return
        done = self.done[shown.judge, vote]
        done.pop(shown.id, None)
        if self.finished(shown):
            done[shown.id] = None
            self.unfinished.pop(shown.id, None)
        elif not vote:
            self.unfinished[shown.id] = shown

    def seen(self, question: str, judge: str) -> frozenset[frozenset[str]]:
        """Return the sets of documents of a question that were shown to a judge."""
        return frozenset(
            presentation.items
            for presentation in self.by_question[question]
            # Who graded a document in sight of the rankings does not judge it blind.
            if presentation.judge == judge and presentation.purpose not in _NO_TASKS - {"comparison"}
        )

    def tasks_of(self, judge: str, *, votes: bool = False) -> list[Presentation]:
        """Return the tasks (or votes) presented to a judge, in this order."""
        own = (presentation for presentation in self.by_judge[judge] if presentation.purpose not in _NO_TASKS)
        return [presentation for presentation in own if (presentation.mode == "answers") == votes]

    def open_task(self, judge: str, now: datetime, *, votes: bool) -> Presentation | None:
        """Return the last task (or vote) that the judge has neither answered nor postponed."""
        for shown in reversed(self.tasks_of(judge, votes=votes)):
            choice = self.latest.get(shown.id)
            if choice is None and (votes or not shown.expired(now)):
                return shown
            if choice is not None and choice.outcome == "undone":
                return shown
        return None

    def postponed_task(self, judge: str, *, votes: bool) -> Presentation | None:
        """Return the first task (or vote) that the judge postponed."""
        answered = (
            presentation for presentation in self.tasks_of(judge, votes=votes) if presentation.id in self.latest
        )
        return next(
            (presentation for presentation in answered if self.latest[presentation.id].outcome == "later"), None
        )

    def present(
        self, judge: str, question: str, documents: Iterable[str], *, purpose: str, now: datetime
    ) -> Presentation:
        """Return a new presentation, not yet stored."""
        return Presentation(
            str(uuid.uuid4()),
            question,
            tuple(documents),
            judge,
            "answers" if purpose == "vote" else self.settings.mode,
            purpose,
            self.guideline,
            expires=(now + timedelta(minutes=self.settings.lease)).isoformat(timespec="seconds"),
            seed=self.next_seed,
        )

    @property
    def next_seed(self) -> int:
        """The seed of the next presentation."""
        return self.settings.seed * 1_000_003 + self.presented + 1

    def judgments(self, shown: Iterable[Presentation], now: datetime) -> list[Judgment]:
        """Return the presentations with their latest choices and statuses."""
        shown = list(shown)
        choices = [self.latest[presentation.id] for presentation in shown if presentation.id in self.latest]
        return judgments_of(shown, choices, self.judges, now=now)

    def finished(self, shown: Presentation) -> bool:
        """Return whether the judge answered the task and neither postponed nor undid it."""
        choice = self.latest.get(shown.id)
        return choice is not None and choice.finished

    def known(self, question: str, now: datetime) -> KnownQuestion:
        """Return the counted judgments of a question; cached until the next choice."""
        if question not in self._known:
            pool = self.pools.get(question, ())
            graded = self.settings.mode == "graded"
            judgments = [
                (judgment.presentation, judgment.choice)
                for judgment in self.judgments(self.by_question[question], now)
                if judgment.counted and judgment.choice is not None
                # Grades do not count in other modes, and choices do not count in graded mode.
                if (judgment.presentation.mode == "graded") == graded
            ]
            state = QuestionState(
                pool,
                tuple(
                    (shown.documents, None if choice.outcome == "graded" else choice.documents)
                    for shown, choice in judgments
                ),
                judges=tuple(shown.judge for shown, _ in judgments),
            )
            # Each imported set of the pool replaces one task, whoever judged it.
            imported = {shown.items for shown, _ in judgments if shown.purpose == "import" and shown.items <= {*pool}}
            done = len(imported) + sum(shown.purpose != "import" for shown, _ in judgments)
            left = 0 if is_resolved(state) else max(0, self.settings.tasks(len(pool)) - done)
            self._known[question] = KnownQuestion(state, split_documents(state), left)
        return self._known[question]

    def available(self, people: Collection[str], now: datetime) -> int:
        """Return the largest number of tasks that these people can still get: begun, shared, and new ones."""
        reserved = self.reserved(now)
        shared = Counter(shown.question for judge in people for shown in _unfinished_overlaps(self, judge, now))
        total = sum(
            shown.judge in people and (shown.id in self.latest or not shown.expired(now))
            for shown in self.unfinished.values()
        )
        for question, pool in self.pools.items():
            shown = min(self.settings.shown or 1, len(pool))
            seen = (items for judge in people for items in self.seen(question, judge) if items <= {*pool})
            unseen = math.comb(len(pool), shown) * len(people) - sum(len(items) == shown for items in seen)
            total += max(shared[question], min(self.known(question, now).left - len(reserved[question]), unseen), 0)
        return total

    def reserved(self, now: datetime) -> defaultdict[str, list[frozenset[str]]]:
        """Return the sets of each question that are reserved for judges."""
        reserved = defaultdict[str, list[frozenset[str]]](list)
        for shown in self.unfinished.values():
            if not shown.expired(now):
                reserved[shown.question].append(shown.items)
        return reserved


# Tasks between an answer and its repeat, so that the judge no longer remembers the answer.
_REPEAT_AFTER = 10


def next_vote(state: ProjectState, judge: str, now: datetime) -> Presentation | None:
    """Return the next two answers for a judge, not yet stored, or None if no pair is left."""
    pair = next_pair(
        (answer for answer in state.answers.values() if answer.question in state.questions),
        state.votes,
        (presentation.items for presentation in state.tasks_of(judge, votes=True)),
        random.Random(state.next_seed),  # noqa: S311 - a recorded seed, not a secret
    )
    if pair is None:
        return None
    return state.present(judge, pair[0].question, (answer.id for answer in pair), purpose="vote", now=now)


def next_presentation(state: ProjectState, judge: str, now: datetime) -> Presentation | None:
    """Return the next presentation for a judge, not yet stored, or None if no task is left."""
    settings = state.settings
    rng = random.Random(state.next_seed)  # noqa: S311 - a recorded seed, not a secret
    draw = rng.random()

    def present(question: str, documents: Iterable[str], purpose: str) -> Presentation:
        shuffled = list(documents)
        rng.shuffle(shuffled)
        return state.present(judge, question, shuffled, purpose=purpose, now=now)

    own = state.tasks_of(judge)
    gold = [
        gold_task
        for gold_task in state.gold
        if frozenset(gold_task.documents) not in state.seen(gold_task.question, judge)
    ]
    share = settings.gold if gold else 0.0
    if draw < share:
        task = rng.choice(gold)
        return present(task.question, task.documents, "gold")
    if draw < share + settings.repeats and settings.mode != "ranking":
        repeated = {
            (presentation.question, presentation.items) for presentation in own if presentation.purpose == "repeat"
        }
        old = [
            presentation
            for presentation in own[:-_REPEAT_AFTER]
            if presentation.purpose in {"active", "random", "overlap"}
            and state.finished(presentation)
            and (presentation.question, presentation.items) not in repeated
        ]
        if old:
            again = rng.choice(old)
            return present(again.question, again.documents, "repeat")
    shared = next(_unfinished_overlaps(state, judge, now), None)
    if shared is not None:
        return present(shared.question, shared.documents, "overlap")
    purpose = "active" if rng.random() >= settings.random else "random"
    if rng.random() < settings.overlap and settings.judges > 1:
        # Overlap sets are random: agreement on sets chosen by the fit would be biased.
        purpose = "overlap"
    reserved = state.reserved(now)
    for question in _by_need(state, reserved, now):
        known = replace(
            state.known(question, now).state,
            pending=tuple(reserved.get(question, ())),
            seen=state.seen(question, judge),
        )
        documents = next_documents(
            known, settings.shown or 1, views=settings.views, at_random=purpose != "active", rng=rng
        )
        if documents is not None:
            return present(question, documents, purpose)
    return None


def _unfinished_overlaps(state: ProjectState, judge: str, now: datetime) -> Iterator[Presentation]:
    """Yield each shared set that needs more judges and that this judge has not seen."""
    for (question, _), shown in state.overlaps.items():
        same = [presentation for presentation in shown if state.finished(presentation) or not presentation.expired(now)]
        people = {presentation.judge for presentation in same}
        if question in state.pools and same and len(people) < state.settings.judges and judge not in people:
            yield same[0]


def _by_need(state: ProjectState, reserved: Mapping[str, list[frozenset[str]]], now: datetime) -> list[str]:
    """Return the questions that need tasks, the least complete first."""
    needs = []
    for number, (question, pool) in enumerate(state.pools.items()):
        known, held = state.known(question, now), len(reserved.get(question, ()))
        if known.left > held:
            share = (held - known.left) / state.settings.tasks(len(pool))
            needs.append((share, number, question))
    return [question for *_, question in sorted(needs)]
