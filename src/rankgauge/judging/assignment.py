"""Selection of a judge's next task: hidden test, repeat, shared set, or most informative set."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from rankgauge.judging.events import Presentation
from rankgauge.judging.selection import next_documents
from rankgauge.judging.state import ProjectState

# Tasks between an answer and its repeat, so that the judge no longer remembers the answer.
_REPEAT_AFTER = 10


def postponed_task(state: ProjectState, judge: str) -> Presentation | None:
    """Return the first task that the judge postponed, or None."""
    for shown in state.open_tasks(judge):
        choice = state.latest.get(shown.id)
        if choice is not None and choice.outcome == "later":
            return shown
    return None


def next_presentation(state: ProjectState, judge: str, now: datetime) -> Presentation | None:
    """Return the next presentation for a judge, not yet stored, or None if no task is left."""
    settings = state.settings
    seed = settings.seed * 1_000_003 + state.presented + 1
    rng = random.Random(seed)  # noqa: S311 - a recorded seed, not a secret
    draw = rng.random()

    def present(question: str, documents: Iterable[str], purpose: str) -> Presentation:
        found = list(documents)
        rng.shuffle(found)
        end = now + timedelta(minutes=settings.lease)
        return Presentation(
            str(uuid.uuid4()),
            question,
            tuple(found),
            judge,
            settings.mode,
            purpose,
            state.guideline,
            expires=end.isoformat(timespec="seconds"),
            seed=seed,
        )

    own = state.by_judge[judge]
    gold = [each for each in state.gold if frozenset(each.documents) not in state.seen(each.question, judge)]
    share = settings.gold if gold else 0.0
    if draw < share:
        task = rng.choice(gold)
        return present(task.question, task.documents, "gold")
    if draw < share + settings.repeats and settings.mode != "ranking":
        repeated = {(each.question, each.items) for each in own if each.purpose == "repeat"}
        old = [
            each
            for each in own[:-_REPEAT_AFTER]
            if each.purpose in {"active", "random", "overlap"}
            and state.finished(each)
            and (each.question, each.items) not in repeated
        ]
        if old:
            again = rng.choice(old)
            return present(again.question, again.documents, "repeat")
    shared = _unfinished_overlap(state, judge, now)
    if shared is not None:
        return present(shared.question, shared.documents, "overlap")
    purpose = "active" if rng.random() >= settings.random else "random"
    at_random = purpose == "random"
    if rng.random() < settings.overlap and settings.judges > 1:
        # Overlap sets are random: agreement on sets chosen by the fit would be biased.
        purpose, at_random = "overlap", True
    reserved = state.reserved(now)
    for question in _by_need(state, reserved, now):
        known = replace(
            state.known(question, now).state,
            pending=tuple(reserved.get(question, ())),
            seen=state.seen(question, judge),
        )
        found = next_documents(known, settings.shown or 1, views=settings.views, at_random=at_random, rng=rng)
        if found is not None:
            return present(question, found, purpose)
    return None


def _unfinished_overlap(state: ProjectState, judge: str, now: datetime) -> Presentation | None:
    """Return a shared set that needs more judges and that this judge has not seen."""
    wanted = state.settings.judges
    for items in state.open_overlaps:
        same = [each for each in state.overlaps[items] if state.finished(each) or not each.expired(now)]
        people = {each.judge for each in same}
        if items[0] in state.pools and same and len(people) < wanted and judge not in people:
            return same[0]
    return None


def _by_need(state: ProjectState, reserved: Mapping[str, list[frozenset[str]]], now: datetime) -> list[str]:
    """Return the questions that need tasks, the least complete first."""
    needs = []
    for number, (question, pool) in enumerate(state.pools.items()):
        known, held = state.known(question, now), len(reserved.get(question, ()))
        if known.left > held:
            share = (known.done + held) / state.settings.tasks(len(pool))
            needs.append((share, number, question))
    return [question for *_, question in sorted(needs)]
