"""A/B votes on answers: win rates, the effect of the side, and credit for source documents."""

from __future__ import annotations

import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rankgauge.core.text import Ratio, keep, many
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.lines import Source, source_name
from rankgauge.formats.records import row_cells
from rankgauge.judging.events import CHANGES, Answer, Choice, Judge, Judgment, Presentation, Settings
from rankgauge.judging.project import JudgingProject
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Detail, Table, first_rows

_ROWS = 8  # rows of a short table
_COLUMNS = ("question", "left", "right", "winner", "judge", "comment", "time")
_WINNERS = ("left", "right", "both good", "both bad", "tie", "cannot tell")
# Namespace of identifiers: equal rows of a file have equal identifiers.
_NAMESPACE = uuid.UUID("5c1f4d3e-6d0b-4c0e-9b53-3a3c2a2a7a11")


@dataclass(frozen=True, slots=True)
class PairVotes:
    """Votes on the answers of two systems.

    Attributes:
        kind: The voters: ``person``, ``application``, or ``model``.
        system: The alphabetically first system.
        other: The second system.
        wins: Votes for the answer of `system`.
        losses: Votes for the answer of `other`.
        both_good: Votes that both answers are good.
        both_bad: Votes that both answers are bad.
        ties: Imported ties that do not say whether both were good or bad.
        cannot_tell: Votes without a verdict.
        rate: wins / (wins + losses), from 0 to 1; None without wins and losses.
        low: The lower bound of the 95% Wilson interval of the rate.
        high: The upper bound of the interval.
        voters: The number of judges or applications that voted.
    """

    kind: str
    system: str
    other: str
    wins: int
    losses: int
    both_good: int
    both_bad: int
    ties: int
    cannot_tell: int
    rate: float | None
    low: float
    high: float
    voters: int


@dataclass(frozen=True, slots=True)
class SideVotes:
    """Votes for the left and the right answer, to test for an effect of the side.

    Attributes:
        kind: The voters: ``person``, ``application``, or ``model``.
        left: Votes for the left answer.
        right: Votes for the right answer.
        rate: left / (left + right), expected 0.5 without an effect of the side; None without votes.
        low: The lower bound of the 95% Wilson interval of the rate.
        high: The upper bound of the interval.
    """

    kind: str
    left: int
    right: int
    rate: float | None
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class DocumentCredit:
    """Votes on pairs of answers of which only one was generated from a given document.

    Attributes:
        question: The identifier of the question.
        document: The identifier of the document.
        kind: The voters: ``person``, ``application``, or ``model``.
        shown: Votes on pairs in which exactly one answer was generated from the document.
        chosen: Those votes that preferred the answer generated from it.
    """

    question: str
    document: str
    kind: str
    shown: int
    chosen: int


@dataclass(frozen=True, eq=False, repr=False)
class VoteReport(Result):
    """Win rates of systems, the effect of the side, and credit for source documents.

    Votes of people, applications, and models are counted separately. The win rate is wins / (wins +
    losses); votes for both good, both bad, and ties are reported but excluded from rates.

    If the systems differ in exactly one property (retrieval version, prompt, or model), a vote
    credits the documents from which only one of the answers was generated. *Shown* counts all votes
    with a verdict, *chosen* those for the answer with the document. These counts are never part of
    expert judgments.

    Attributes:
        pairs: Votes by pair of systems and kind of voter.
        sides: Votes by side and kind of voter.
        credits: Credits by question, document, and kind of voter.
        credited: The number of votes that credited documents.
        uncredited: Votes with a verdict that credited no document, by reason: ``two things
            changed`` (or three), ``nothing changed``, or ``same sources``.

    Example:
        >>> answers = {"a": Answer("a", "q1", "yes", "v1", sources=("d1",)),
        ...            "b": Answer("b", "q1", "no", "v2", sources=("d2",))}
        >>> shown = Presentation("p1", "q1", ("b", "a"), "ann", "answers", "vote")
        >>> vote = Judgment(shown, Choice("c1", "p1", "ann", "chosen", ("a",)), "vote")
        >>> report = summarize_votes([vote], answers)
        >>> [(pair.system, pair.wins, pair.losses) for pair in report.pairs]
        [('v1', 1, 0)]
        >>> [(credit.document, credit.chosen, credit.shown) for credit in report.credits]
        [('d1', 1, 1), ('d2', 0, 1)]
    """

    _attributes = "pairs sides credits credited uncredited notes=_notes"

    pairs: tuple[PairVotes, ...]
    sides: tuple[SideVotes, ...]
    credits: tuple[DocumentCredit, ...]
    credited: int
    uncredited: Mapping[str, int]

    _columns = "pairs " + " ".join(PairVotes.__slots__)

    def table(self) -> Table:
        """Return one row for each pair of systems and kind of voter; votes without a preference are details."""
        kinds = len({pair.kind for pair in self.pairs}) > 1
        rows = (
            (
                pair.system,
                pair.other,
                pair.kind,
                pair.wins,
                pair.losses,
                pair.both_good,
                pair.both_bad,
                pair.ties,
                pair.cannot_tell,
                pair.rate,
                None if pair.rate is None else f"{pair.low:.3f} to {pair.high:.3f}",
            )
            for pair in self.pairs
        )
        return Table(
            columns=(
                "system",
                "other system",
                "voters" if kinds else Detail("voters"),
                "wins",
                "losses",
                *map(Detail, ("both good", "both bad", "ties", "cannot tell")),
                "win rate",
                "95% CI",
            ),
            rows=tuple(first_rows(rows, _ROWS)),
            title=self.summary(),
            digits=3,
            right=frozenset({10}),
            notes=self._notes(),
            abridged=frozenset({0, 1}),
            unit="pair",
        )

    def summary(self) -> str:
        """Return the number of votes and the first pair whose interval excludes 0.5."""
        votes = sum(side.left + side.right for side in self.sides)
        pairs = many(len({(pair.system, pair.other) for pair in self.pairs}), "pair")
        text = f"{many(votes, 'vote')} with a preference on {pairs} of systems."
        clear = [pair for pair in self.pairs if pair.low > 0.5 or pair.high < 0.5]
        if not clear:
            return f"{text} No interval of a win rate excludes 0.5."
        pair = max(clear, key=lambda pair: pair.wins + pair.losses)
        rate, best, other = max(
            (pair.rate or 0, pair.system, pair.other), (1 - (pair.rate or 0), pair.other, pair.system)
        )
        return f"{text} {best} wins {Ratio(rate):.1%} against {other} ({pair.kind} votes)."

    def _notes(self) -> tuple[str, ...]:
        others = ", ".join(f"{why} ({count:,})" for why, count in sorted(self.uncredited.items()))
        return keep(
            "win rate = wins / (wins + losses), 95% Wilson interval; both good, both bad, and "
            "ties are excluded; the interval treats votes as independent",
            *(
                f"left answer preferred in {side.left:,} of {side.left + side.right:,} votes"
                f" ({side.kind}): {Ratio(side.rate):.3f}, 95% CI {side.low:.3f} to "
                f"{side.high:.3f}"
                for side in self.sides
                if side.rate is not None
            ),
            (self.credited or others)
            and f"votes that credit source documents: {self.credited:,}" + (f"; others: {others}" if others else ""),
        )


def summarize_votes(
    judgments: Iterable[Judgment], answers: Mapping[str, Answer], kinds: Mapping[str, str] | None = None
) -> VoteReport:
    """Count votes by system and by source document.

    Args:
        judgments: All judgments of a project; finished judgments of answers are votes.
        answers: The answers by identifier.
        kinds: The kind of each judge: ``person`` (the default), ``application``, or ``model``.
    """
    outcomes: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    voters: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    sides: dict[str, Counter[str]] = defaultdict(Counter)
    preferences: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    uncredited: Counter[str] = Counter()
    credited = 0
    for judgment in judgments:
        presentation, choice = judgment.presentation, judgment.choice
        if presentation.mode != "answers" or choice is None or not choice.finished:
            continue
        kind = (kinds or {}).get(presentation.judge, "person")
        left, right = (answers[name] for name in presentation.documents)
        preferred = answers[choice.documents[0]] if choice.outcome == "chosen" else None
        systems = sorted((left.system, right.system))
        key = (systems[0], systems[1], kind)
        outcomes[key][choice.outcome if preferred is None else f"won by {preferred.system}"] += 1
        voters[key].add(presentation.judge)
        if preferred is not None:
            sides[kind]["left" if preferred is left else "right"] += 1
        if choice.outcome == "cannot tell":
            continue
        reason = _uncredited_reason(left, right)
        if reason:
            uncredited[reason] += 1
            continue
        credited += 1
        for answer, other in ((left, right), (right, left)):
            for document in set(answer.sources) - set(other.sources):
                preferences[presentation.question, document, kind].append(answer is preferred)
    return VoteReport(
        tuple(
            _pair(key, votes, len(voters[key]))
            for key, votes in sorted(outcomes.items())
            if key[0] != key[1]  # skip answers of the same system
        ),
        tuple(
            SideVotes(kind, votes["left"], votes["right"], *_rate(votes["left"], votes["right"]))
            for kind, votes in sorted(sides.items())
        ),
        tuple(DocumentCredit(*place, len(own), sum(own)) for place, own in sorted(preferences.items())),
        credited,
        dict(uncredited),
    )


def vote_report(project: JudgingProject) -> VoteReport:
    """Return a report on all votes of a project."""
    kinds = {name: judge.kind for name, judge in project.judges.items()}
    return summarize_votes(project.judgments(), project.answers(), kinds)


def _uncredited_reason(left: Answer, right: Answer) -> str:
    """Return the reason why a vote credits no document; empty if it credits one."""
    changed = sum(getattr(left, name) != getattr(right, name) for name in CHANGES)
    if changed > 1:
        return "two things changed"
    if not changed:
        return "nothing changed"
    return "same sources" if set(left.sources) == set(right.sources) else ""


def _pair(key: tuple[str, str, str], votes: Counter[str], voters: int) -> PairVotes:
    system, other, kind = key
    wins, losses = votes[f"won by {system}"], votes[f"won by {other}"]
    return PairVotes(
        kind,
        system,
        other,
        wins,
        losses,
        votes["both good"],
        votes["both bad"],
        votes["tie"],
        votes["cannot tell"],
        *_rate(wins, losses),
        voters,
    )


def _rate(wins: int, losses: int) -> tuple[float | None, float, float]:
    from rankgauge.stats import wilson_interval

    low, high = wilson_interval(wins, wins + losses)
    return (wins / (wins + losses) if wins + losses else None), float(low), float(high)


def read_answers(source: Source) -> list[Answer]:
    """Read answers of systems from CSV, TSV, or JSON lines.

    Columns: ``id``, ``question``, ``text``, ``retrieval``, ``prompt``, ``model``, and ``sources``
    (in CSV separated by ``;``); ``id`` and ``question`` are required.

    Raises:
        FormatError: If a line is not a valid answer.
    """
    name, answers = source_name(source), []
    for number, row in row_cells(source, key=lambda cell: cell.strip().lower()):
        sources = row.get("sources") or ()
        if isinstance(sources, str):
            sources = tuple(part.strip() for part in sources.split(";") if part.strip())
        values = {key: row.get(key) or "" for key in ("id", "question", "text", *CHANGES)}
        _needed(values, ("id", "question"), name, number)
        try:
            answers.append(Answer(**values, sources=sources))
        except (InputError, TypeError) as error:
            what = error.what if isinstance(error, InputError) else f"sources: {sources!r:.60}"
            raise FormatError(
                what, path=name, line=number, fix='write {"id": "a1", "question": "q1", ...} as text'
            ) from None
    return answers


def import_votes(project: JudgingProject, source: Source, *, kind: str = "person") -> int:
    """Import votes from CSV, TSV, or JSON lines and return the number of new votes; importing twice adds none.

    Columns: ``question``; ``left`` and ``right`` (identifiers of the answers on these sides);
    ``winner`` (``left``, ``right``, ``both good``, ``both bad``, ``tie``, or ``cannot tell``); and
    optionally ``judge``, ``comment``, and ``time``.

    Args:
        project: The project; it must contain the answers.
        source: The file.
        kind: The voters: ``person``, ``application``, or ``model``.

    Raises:
        FormatError: If a line is not a valid vote or an answer is unknown; nothing is imported.
    """
    votes, answers, name = [], project.answers(), source_name(source)
    for number, row in row_cells(source, key=lambda cell: cell.strip().lower()):
        vote = {key: str(row.get(key) or "").strip() for key in _COLUMNS}
        _needed(vote, _COLUMNS[:4], name, number)
        vote["winner"] = vote["winner"].lower()
        if vote["winner"] not in _WINNERS:
            raise FormatError(
                f"the winner is {vote['winner']!r:.40}",
                path=name,
                line=number,
                fix=f"use one of {', '.join(_WINNERS)}",
            )
        for side in (vote["left"], vote["right"]):
            if side not in answers:
                raise FormatError(
                    f"there is no answer {side!r:.60}",
                    path=name,
                    line=number,
                    fix="import the answers first, with these identifiers",
                )
            if answers[side].question != vote["question"]:
                raise FormatError(
                    f"answer {side!r:.60} is of question {answers[side].question!r:.60}",
                    path=name,
                    line=number,
                    fix=f"use answers to {vote['question']!r:.60}",
                )
        if vote["left"] == vote["right"]:
            raise FormatError(
                f"both answers are {vote['left']!r:.60}", path=name, line=number, fix="use two different answers"
            )
        votes.append(vote)
    new = 0
    same: Counter[tuple[str, ...]] = Counter()
    with project.writing() as stored:
        judges = stored.judges()
        known = {presentation.id for presentation in stored.presentations()}
        version = (stored.version("guideline") or (1, ""))[0]
        for vote in votes:
            question, left, right, winner, name, comment, time = cells = (*vote.values(),)
            same[cells] += 1
            # The key "line" is in the identifiers of stored votes.
            shown_id = str(uuid.uuid5(_NAMESPACE, json.dumps([kind, {**vote, "line": 0}, same[cells]])))
            if shown_id in known:
                continue
            judge = f"import-{kind}-{name}" if name else f"import-{kind}"
            if judge not in judges:
                judges[judge] = Judge(judge, name or f"imported {kind}", kind=kind)
                stored.add_judge(judges[judge])
            stored.append_presentation(
                Presentation(shown_id, question, (left, right), judge, "answers", "import", version, time)
            )
            preferred = {"left": left, "right": right}.get(winner)
            stored.append_choice(
                Choice(
                    str(uuid.uuid5(_NAMESPACE, shown_id)),
                    shown_id,
                    judge,
                    "chosen" if preferred else winner,
                    (preferred,) if preferred else (),
                    comment=comment,
                    time=time,
                )
            )
            new += 1
    return new


def add_vote(project: JudgingProject, choice: Choice, left: Answer, right: Answer) -> bool:
    """Store an application's vote with its answers; return whether it is new.

    Args:
        project: The project.
        choice: The vote. The application chooses its identifier, so that a vote sent twice is
            stored once; its `presentation` is set here.
        left: The answer on the left.
        right: The answer on the right.

    Raises:
        InputError: If the vote is invalid, or an answer differs from the stored answer.
    """
    if left.question != right.question or left.id == right.id:
        raise InputError(
            f"answers {left.id!r:.60} and {right.id!r:.60}",
            where="vote",
            fix="use two different answers to one question",
        )
    # Two applications may use the same identifier.
    name = str(uuid.uuid5(_NAMESPACE, f"{choice.judge} {choice.id}"))
    choice = replace(choice, id=name, presentation=name)
    shown = Presentation(name, left.question, (left.id, right.id), choice.judge, "answers", "vote")
    choice.check(shown, Settings())
    project.add_answers((left, right))
    with project.writing() as stored:
        if stored.choice(name) is not None:
            return False
        stored.append_presentation(replace(shown, guideline=(stored.version("guideline") or (1, ""))[0]))
        stored.append_choice(choice)
    return True


def _needed(values: Mapping[str, Any], names: Iterable[str], path: str, line: int) -> None:
    missing = [name for name in names if not values[name]]
    if missing:
        raise FormatError(
            f"there is no {' and no '.join(missing)}", path=path, line=line, fix=f"use {', '.join(names)} in every line"
        )
