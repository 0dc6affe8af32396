"""Interleaving: comparison of two retrievers by clicks on a combined list of their results.

`interleave` runs inside an application and needs only the standard library. Its result is logged
with the impression, which `analyze_interleaving` reads.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from rankgauge.core.arguments import choice as one_of, integer
from rankgauge.core.text import keep, many
from rankgauge.errors import InputError
from rankgauge.production.events import statement
from rankgauge.rendering import Result, Table

if TYPE_CHECKING:
    from rankgauge.production.log import EventLog
    from rankgauge.stats.arrays import FloatArray

Method: TypeAlias = Literal["team-draft", "probabilistic"]
_NEITHER = "-"
_DECAY = 3.0  # for probabilistic interleaving: rank r is drawn with weight 1 / r³
_ALPHA = 0.05
_DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Interleaved:
    """The combined list of the results of two retrievers.

    Attributes:
        documents: Identifiers of the documents in display order.
        teams: The retriever that contributed each document, ``A`` or ``B``, or ``-`` if clicks are
            credited to neither because one retriever has no more documents.
        method: ``team-draft`` or ``probabilistic``.
        seed: The seed of the draw.
        shares: For ``probabilistic``, the probability that A contributed each document, given that
            it was drawn at this rank; NaN for team ``-``. Empty for ``team-draft``.
    """

    documents: tuple[str, ...]
    teams: str
    method: str
    seed: int | str
    shares: tuple[float, ...] = ()

    def attributes(self, a: str = "A", b: str = "B") -> dict[str, str]:
        """Return the attributes to log with the impression.

        Args:
            a: The name of retriever A, such as ``bm25``.
            b: The name of retriever B.
        """
        attributes = {
            "interleaving": self.method,
            "interleaving.a": a,
            "interleaving.b": b,
            "interleaving.teams": self.teams,
            "interleaving.seed": str(self.seed),
        }
        if self.shares:
            attributes["interleaving.shares"] = ",".join(f"{share:.6g}" for share in self.shares)
        return attributes


def interleave(
    a: Sequence[str], b: Sequence[str], *, seed: int | str, method: Method = "team-draft", k: int | None = None
) -> Interleaved:
    """Interleave two rankings, recording the retriever of each document.

    *Team-draft* (Radlinski, Kurup, and Joachims 2008): in each round a coin decides which retriever
    is first; each contributes its best document that is not yet in the list. *Probabilistic*
    (Hofmann, Whiteson, and de Rijke 2011): at each rank a coin decides which retriever contributes,
    and its document of rank r is drawn with a probability proportional to 1 / r³, so that every
    order is possible and clicks can be credited by the probability of each team.

    At each rank A and B are equally likely to be credited, so that random clicks favor neither.
    When one retriever has no more documents, those of the other follow with team ``-``, which
    preserves this property.

    Args:
        a: Document identifiers of retriever A, best first; only the first of duplicates counts.
        b: Document identifiers of retriever B.
        seed: The seed, which determines the draw. Use a new seed for each impression, such as the
            identifier of the question.
        method: ``team-draft`` or ``probabilistic``.
        k: The length of the list; if None, all documents.

    Raises:
        InputError: If `k` is not a whole number of 1 or more.
        UnknownName: If `method` is unknown.

    Example:
        >>> interleaved = interleave(["d1", "d2", "d3"], ["d2", "d4", "d1"], seed=7, k=4)
        >>> interleaved.documents, interleaved.teams
        (('d1', 'd2', 'd3', 'd4'), 'ABAB')
    """
    chosen = one_of("method", method, get_args(Method))
    sides = {"A": list(dict.fromkeys(a)), "B": list(dict.fromkeys(b))}
    every = len({*a, *b})
    length = every if k is None else min(integer("k", k), every)
    pick = _team_draft if chosen == "team-draft" else _probabilistic
    shown, teams, shares = pick(sides, length, random.Random(seed))  # noqa: S311 - must be repeatable
    # The documents that follow are credited to neither retriever.
    documents = list(dict.fromkeys([*shown, *sides["A"], *sides["B"]]))[:length]
    rest = len(documents) - len(shown)
    if chosen == "probabilistic":
        shares += [math.nan] * rest
    return Interleaved(tuple(documents), teams + _NEITHER * rest, chosen, seed, tuple(shares))


def _team_draft(
    sides: Mapping[str, Sequence[str]], length: int, draw: random.Random
) -> tuple[list[str], str, list[float]]:
    shown: list[str] = []
    teams = ""
    while len(shown) < length:
        left = {side: [document for document in own if document not in shown] for side, own in sides.items()}
        # A round is only unbiased if it can be completed with either retriever first.
        last = len(shown) + 1 == length
        if not (left["A"] and left["B"]) or (
            not last and min(map(len, left.values())) == 1 and left["A"][0] == left["B"][0]
        ):
            break
        order = "AB" if draw.random() < 0.5 else "BA"
        for side in order[: length - len(shown)]:
            shown.append(next(document for document in left[side] if document not in shown))
            teams += side
    return shown, teams, []


def _probabilistic(
    sides: Mapping[str, Sequence[str]], length: int, draw: random.Random
) -> tuple[list[str], str, list[float]]:
    weights = {side: {document: rank**-_DECAY for rank, document in enumerate(own, 1)} for side, own in sides.items()}
    shown: list[str] = []
    teams = ""
    shares: list[float] = []
    while len(shown) < length and all(weights.values()):
        side = "A" if draw.random() < 0.5 else "B"
        document = _drawn(weights[side], draw.random())
        chances = {team: own.get(document, 0.0) / math.fsum(own.values()) for team, own in weights.items()}
        shown.append(document)
        teams += side
        shares.append(chances["A"] / (chances["A"] + chances["B"]))
        for own in weights.values():
            own.pop(document, None)
    return shown, teams, shares


def _drawn(weights: Mapping[str, float], at: float) -> str:
    """Return the document at a fraction of the cumulative weights."""
    left = at * math.fsum(weights.values())
    for document, weight in weights.items():
        left -= weight
        if left < 0:
            return document
    return document


@lru_cache(maxsize=1 << 16)
def impression_outcome(shares: tuple[float, ...]) -> tuple[float, float]:
    """Return the probability that A is credited with more clicks, and that of B.

    The assignments of clicked documents to retrievers are marginalized out (Hofmann et al. 2011):
    the number of clicks for A is a sum of independent variables that are 1 with probability
    `shares`.

    Args:
        shares: The probability that each clicked document is from A; 1 or 0 if known.

    Example:
        >>> impression_outcome((1.0, 1.0, 0.0))
        (1.0, 0.0)
        >>> impression_outcome((0.75,))
        (0.75, 0.25)
    """
    chances = [1.0]  # probabilities of 0, 1, ... clicks for A
    for share in shares:
        from_b = [*(chance * (1 - share) for chance in chances), 0.0]
        from_a = [0.0, *(chance * share for chance in chances)]
        chances = [x + y for x, y in zip(from_b, from_a, strict=True)]
    half = len(shares) / 2
    a = math.fsum(chance for count, chance in enumerate(chances) if count > half)
    b = math.fsum(chance for count, chance in enumerate(chances) if count < half)
    return a, b


@dataclass(frozen=True, eq=False)
class InterleavingResult(Result):
    """The preference of users between two interleaved retrievers.

    Returned by :func:`analyze_interleaving`.

    The retriever with more credited clicks wins an impression. A document counts once even if both
    the result and its citation were clicked. Impressions of probabilistic interleaving are split by
    the probability of each outcome.

    Attributes:
        a: The name of retriever A.
        b: The name of retriever B.
        methods: The interleaving methods in the log.
        impressions: The number of questions with interleaved results.
        clicked: Impressions with a credited click; only these count below.
        wins_a: Impressions won by A.
        wins_b: Impressions won by B; the others are ties.
        result_clicks: Credited documents whose result was clicked.
        citation_clicks: Credited documents whose citation was clicked.
        delta: (wins_a + ties / 2) / clicked - 0.5: from -0.5 to 0.5, above 0 if A is preferred
            (Chapelle et al. 2012).
        low: The lower bound of the 95% interval of `delta`, from a bootstrap over users.
        high: The upper bound of the interval.
        users: Users with a credited click.
        users_a: Users for whom A won more impressions.
        users_b: Users for whom B won more impressions.
        p: The p-value of the two-sided sign test over users.
        unusable: Impressions whose list of teams does not match the documents.
        seed: The seed of the bootstrap.
    """

    _attributes = "* verdict"

    a: str
    b: str
    methods: tuple[str, ...]
    impressions: int
    clicked: int
    wins_a: float
    wins_b: float
    result_clicks: int
    citation_clicks: int
    delta: float
    low: float
    high: float
    users: int
    users_a: int
    users_b: int
    p: float
    unusable: int
    seed: int

    @property
    def verdict(self) -> str:
        """``better`` or ``worse`` (A than B); ``cannot tell`` unless test and interval agree."""
        if self.p >= _ALPHA or not (self.low > 0 or self.high < 0):
            return "cannot tell"
        return "better" if self.low > 0 else "worse"

    def table(self) -> Table:
        """Return the impressions and users won by each retriever."""
        needed = self._users_needed()
        return Table(
            ("", "impressions", "users"),
            (
                (f"won by {self.a} (A)", _count(self.wins_a), self.users_a),
                (f"won by {self.b} (B)", _count(self.wins_b), self.users_b),
                ("tied", _count(self.clicked - self.wins_a - self.wins_b), self.users - self.users_a - self.users_b),
            ),
            title=self.summary(),
            notes=keep(
                f"{' and '.join(self.methods)}, {many(self.impressions, 'impression')}, "
                f"{self.clicked:,} with a click on a document of A or B; "
                f"{many(self.result_clicks, 'document')} clicked as result, "
                f"{self.citation_clicks:,} as citation",
                "Δ_AB = (wins of A + ties / 2) / impressions with a click - 0.5",
                f"interval: bootstrap over users, {_DRAWS:,} draws, seed {self.seed}; fix the size in "
                "advance: repeating the test daily raises the rate of false alarms",
                needed and f"a preference of this size would need about {needed:,} more users (80% power)",
                self.unusable
                and f"{many(self.unusable, 'impression')} left out: interleaving.teams needs one letter "
                "for each document",
            ),
            right=frozenset({1}),
        )

    def summary(self) -> str:
        """Return the preferred retriever with interval and p-value."""
        numbers = f"Δ_AB {self.delta:+.4f} (95% CI {self.low:+.4f} to {self.high:+.4f})"
        numbers += f", p = {self.p:.4f} by the sign test over {many(self.users, 'user')}"
        if self.verdict == "cannot tell":
            return f"{self.a} and {self.b} by interleaving: cannot tell, {numbers}"
        return f"{self.a} is {self.verdict} than {self.b} by interleaving: {numbers}"

    def _users_needed(self) -> int:
        """Return the number of further users for a sign test with 80% power."""
        decided = self.users_a + self.users_b
        if self.verdict != "cannot tell" or not decided or self.users_a == self.users_b:
            return 0
        share = max(self.users_a, self.users_b) / decided
        # Normal approximation: z(0.975) and z(0.8).
        needed = ((1.96 / 2 + 0.8416 * math.sqrt(share * (1 - share))) / (share - 0.5)) ** 2
        return max(0, math.ceil((needed - decided) * self.users / decided))


def _count(number: float) -> str:
    return f"{number:,.0f}" if number == round(number) else f"{number:,.1f}"


def analyze_interleaving(
    log: EventLog | str | os.PathLike[str], *, a: str | None = None, b: str | None = None, seed: int = 0
) -> InterleavingResult:
    """Determine which of two interleaved retrievers users prefer.

    The log must have impressions with :meth:`Interleaved.attributes`, and clicks on results or
    citations of the same questions. A click on a citation is credited to the retriever that
    contributed the cited document. The unit is the user, else the session, else the question.

    Args:
        log: The log.
        a: The name of retriever A, if several pairs were interleaved.
        b: The name of retriever B.
        seed: The seed of the bootstrap.

    Raises:
        InputError: If the log has no such impressions, or impressions of several pairs.
    """
    import numpy as np

    from rankgauge.production.log import EventLog
    from rankgauge.stats import sign_test

    log = EventLog.of(log)
    with log.connection() as connection:
        pair = _pair(connection.execute(statement("interleaved_pairs"), {"a": a, "b": b}).fetchall(), log.path)
        connection.execute(statement("interleaved_impressions"), {"a": pair[0], "b": pair[1]})
        [(methods, impressions, unusable)] = connection.execute(
            """SELECT list_sort(list(DISTINCT method)), count(DISTINCT question_id), count(*) FILTER (NOT fits)
            FROM usable"""
        ).fetchall()
        rows = connection.execute(statement("interleaved_clicks")).fetchall()
    if not rows:
        raise InputError(
            "no click on an interleaved document",
            where=log.path,
            fix="log clicks with the question_id of the impression and the document",
        )
    outcomes = np.array([impression_outcome(tuple(shares)) for _, shares, _, _ in rows])
    _, user = np.unique([cluster for cluster, *_ in rows], return_inverse=True)
    gains = np.bincount(user, outcomes[:, 0] - outcomes[:, 1]).astype(np.float64)
    counts = np.bincount(user)
    users_a, users_b = int((gains > 1e-9).sum()), int((gains < -1e-9).sum())
    low, high = _bootstrap(gains, counts.astype(np.float64), seed)
    wins_a, wins_b = (math.fsum(column) for column in outcomes.T.tolist())
    return InterleavingResult(
        *pair,
        tuple(methods),
        impressions,
        len(rows),
        wins_a,
        wins_b,
        sum(row[2] for row in rows),
        sum(row[3] for row in rows),
        (wins_a - wins_b) / len(rows) / 2,
        low,
        high,
        len(counts),
        users_a,
        users_b,
        sign_test(users_a, users_b),
        unusable,
        seed,
    )


def _pair(pairs: Sequence[tuple[str, str]], where: str) -> tuple[str, str]:
    """Return the only pair of interleaved retrievers, or raise an error."""
    if not pairs:
        raise InputError(
            "no impression of interleaved results",
            where=where,
            fix="log rankgauge.production.interleave(...).attributes(a, b) with each impression; "
            "or check the names of the retrievers",
        )
    if len(pairs) > 1:
        raise InputError(
            f"{len(pairs)} pairs were interleaved: " + ", ".join(f"{a} and {b}" for a, b in pairs[:5]),
            where=where,
            fix="choose a pair: a=..., b=... (--a NAME --b NAME)",
        )
    return pairs[0]


def _bootstrap(gains: FloatArray, counts: FloatArray, seed: int) -> tuple[float, float]:
    """Return the 95% percentile interval of sum(gains) / sum(counts) / 2, resampling users."""
    import numpy as np

    from rankgauge.stats.arrays import blocks

    # Users with the same numbers are resampled as a group.
    kinds, number = np.unique(np.stack([gains, counts], axis=1), axis=0, return_counts=True)
    draw = np.random.default_rng(seed)
    deltas: list[float] = []
    for _, size in blocks(_DRAWS, len(kinds)):
        sums = draw.multinomial(len(gains), number / len(gains), size=size) @ kinds
        deltas += (sums[:, 0] / sums[:, 1] / 2).tolist()
    low, high = np.quantile(deltas, [_ALPHA / 2, 1 - _ALPHA / 2])
    return float(low), float(high)
