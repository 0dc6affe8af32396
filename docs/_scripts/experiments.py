"""Error rates of daily tests, interleaving, and click models: simulations, in Markdown.

    python docs/_scripts/experiments.py

Takes about five minutes. All seeds are fixed.
"""

import math
import sys
from collections.abc import Callable, Iterator

import numpy as np

from rankgauge import stats
from rankgauge.production import interleave
from rankgauge.production.interleaving import impression_outcome
from rankgauge.rendering.tables import Table, to_markdown

DAYS, USERS, RUNS, POWER_RUNS = 50, 1500, 1000, 300
PLANNED = 5000


def looks(
    rng: np.random.Generator, rates: tuple[float, float], share: float, users: int = USERS
) -> Iterator[tuple[float, float, float]]:
    """Yield difference, variance, and questions of each day; users return on later days."""
    first = rng.integers(0, DAYS, users)
    asked = rng.poisson(rng.gamma(1, 0.15, (users, 1)) * (np.arange(DAYS) > first[:, None]))
    asked[np.arange(users), first] += 1 + rng.poisson(1, users)
    arm = (rng.random(users) < share).astype(int)
    rate = np.array(rates)[arm]
    hits = rng.binomial(asked, rng.beta(4 * rate, 4 - 4 * rate)[:, None])
    y, x = hits.cumsum(1).astype(float), asked.cumsum(1).astype(float)
    sums = [
        [(x[arm == side] > 0).sum(0)] + [each[arm == side].sum(0) for each in (y, x, y * y, x * y, x * x)]
        for side in (1, 0)
    ]
    for day in range(DAYS):
        new, base = (stats.ClusterSums(*(column[day] for column in side)) for side in sums)
        yield *stats.difference_variance(new, base), new.x + base.x


def decided(found: list[tuple[float, float, float]]) -> tuple[float, bool, bool]:
    """Return questions until the sequence decides, and whether daily and final z tests reject."""
    d, v, n = (np.array(column) for column in zip(*found, strict=True))
    known = np.flatnonzero(np.isfinite(v))
    if not len(known):
        return math.inf, False, False
    tau = stats.mixing_sd(v[known[0]] * n[known[0]] / PLANNED)
    p = stats.confidence_sequence(d, v, mixing=tau).p
    z = np.abs(d[known]) / np.sqrt(v[known]) > 1.959964
    at = n[p <= 0.05].min(initial=math.inf)
    return float(at), bool(z.any()), bool(z[-1])


def false_alarms() -> Table:
    """Equal arms, tested on each of 50 days."""
    rows = []
    for rate in (0.01, 0.05, 0.2, 0.5):
        for share in (0.5, 0.1):
            rng = np.random.default_rng(1)
            found = [decided(list(looks(rng, (rate, rate), share))) for _ in range(RUNS)]
            at, daily, last = (np.array(column) for column in zip(*found, strict=True))
            shares = (np.isfinite(at), daily, last)
            rows.append((str(rate), f"{share:.0%}", *(f"{each.mean():.1%}" for each in shares)))
    head = ("rate", "users in the new arm", "confidence sequence", "z test every day", "z test once")
    return Table(head, tuple(rows))


def power() -> Table:
    """A true difference of 5 points between arms of equal size."""
    rows = []
    for users in (1500, 3000, 6000):
        rng = np.random.default_rng(2)
        found = [decided(list(looks(rng, (0.3, 0.35), 0.5, users))) for _ in range(POWER_RUNS)]
        at, _, last = (np.array(column) for column in zip(*found, strict=True))
        questions = list(looks(np.random.default_rng(2), (0.3, 0.35), 0.5, users))[-1][2]
        middle = float(np.median(at[np.isfinite(at)]))
        rows.append((f"{questions:,.0f}", f"{np.isfinite(at).mean():.0%}", f"{middle:,.0f}", f"{last.mean():.0%}"))
    head = ("questions after 50 days", "found by sequence", "after (median)", "found by one z test")
    return Table(head, tuple(rows))


def clicks_of(rng: np.random.Generator, documents: tuple[str, ...], good: dict[str, float]) -> list[int]:
    """Return the ranks clicked by a user who reads down the list and stops at any rank."""
    found = []
    for place, document in enumerate(documents):
        if rng.random() < good[document[0]]:
            found.append(place)
        if rng.random() < 0.2:
            break
    return found


def interleaved(rng: np.random.Generator, method: str, good: dict[str, float], users: int) -> tuple[float, float]:
    """Return the p-value of the sign test and the mean outcome."""
    lists = [f"a{n}" for n in range(10)], [f"b{n}" for n in range(10)]
    gains = []
    for _ in range(users):
        shown = interleave(*lists, method=method, seed=int(rng.integers(1 << 40)), k=10)
        clicked = clicks_of(rng, shown.documents, good)
        shares = shown.shares or tuple(float(team == "A") for team in shown.teams)
        a, b = impression_outcome(tuple(sorted(shares[place] for place in clicked)))
        gains.append(a - b)
    values = np.array(gains)
    wins = int((values > 1e-9).sum()), int((values < -1e-9).sum())
    return stats.sign_test(*wins), float(values.mean())


def interleaving() -> Table:
    """Users with one impression each; A/B: a z test of the click rates of the same users."""
    rows = []
    for users in (100, 400, 1600):
        for title, good in (("none", (0.1, 0.1)), ("B: 0.10 to 0.13", (0.1, 0.13))):
            rng, quality = np.random.default_rng(3), {"a": good[0], "b": good[1]}
            cells = []
            for method in ("team-draft", "probabilistic"):
                found = [interleaved(rng, method, quality, users)[0] for _ in range(200)]
                cells.append(f"{np.mean(np.array(found) < 0.05):.1%}")
            hits = []
            for _ in range(200):
                counts = [
                    np.array([bool(clicks_of(rng, tuple(side * 10), quality)) for _ in range(users // 2)])
                    for side in "ab"
                ]
                error = math.sqrt(sum(each.var() / len(each) for each in counts))
                z = (counts[1].mean() - counts[0].mean()) / error if error else 0.0
                hits.append(abs(z) > 1.959964)
            rows.append((title, f"{users:,}", *cells, f"{np.mean(hits):.1%}"))
    head = ("preference", "users", "team-draft", "probabilistic", "A/B, search CTR")
    return Table(head, tuple(rows))


def slow_em(pair: np.ndarray, place: np.ndarray, n: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Fit the position-based model by standard EM; return examination, scaled to a maximum of 1."""
    theta, alpha = np.full(place.max() + 1, 0.5), np.full(pair.max() + 1, 0.5)
    for _ in range(3000):
        t, a = theta[place], alpha[pair]
        both = (n - c) / (1 - t * a)
        alpha = np.bincount(pair, c + both * (a - t * a)) / np.maximum(np.bincount(pair, n), 1)
        theta = np.bincount(place, c + both * (t - t * a)) / np.bincount(place, n)
    return theta / theta.max()


def click_models() -> Table:
    """Documents that move by one rank, with a true examination of 1 / rank."""
    rows = []
    for documents in (20_000, 2000, 200):
        rng = np.random.default_rng(4)
        alpha = rng.beta(1, 5, documents)
        pair = np.repeat(np.arange(documents), 3)
        place = np.repeat(rng.integers(1, 9, documents), 3) + np.tile([-1, 0, 1], documents)
        n = rng.poisson(140_000 / documents, len(pair)) + 1
        c = rng.binomial(n, alpha[pair] / (place + 1))
        found = stats.fit_position_model(pair, place + 1, n, c)
        inside = (found.low <= alpha) & (alpha <= found.high)
        rows.append(
            (
                f"{n.sum() / documents:.0f}",
                f"{found.examination[9]:.3f}",
                f"{slow_em(pair, place, n, c)[9]:.3f}",
                f"{inside.mean():.1%}",
            )
        )
    head = ("impressions per document", "examination of rank 10", "by EM", "95% intervals that contain the attraction")
    return Table(head, tuple(rows))


def by_position(rng: np.random.Generator, attraction: np.ndarray) -> np.ndarray:
    """Click a document of a rank that is read with probability 1 / rank, if it attracts."""
    return rng.random(attraction.shape) < attraction / np.arange(1, attraction.shape[1] + 1)


def with_trust(rng: np.random.Generator, attraction: np.ndarray) -> np.ndarray:
    """Also click on documents that do not attract: 12% of those read at rank 1, 1.2% at rank 10."""
    rank = np.arange(1, attraction.shape[1] + 1)
    believed = (1 - 0.02 * rank) * attraction + 0.12 / rank * (1 - attraction)
    return rng.random(attraction.shape) < believed / rank


def reading_down(after_click: float, after_none: float) -> Callable[[np.random.Generator, np.ndarray], np.ndarray]:
    """Return users who go on to the next rank with these probabilities."""

    def users(rng: np.random.Generator, attraction: np.ndarray) -> np.ndarray:
        clicked = rng.random(attraction.shape) < attraction
        goes_on = rng.random(attraction.shape) < np.where(clicked, after_click, after_none)
        read = np.cumprod(np.pad(goes_on[:, :-1], ((0, 0), (1, 0)), constant_values=True), axis=1)
        return clicked & (read > 0)

    return users


USERS_OF_RESULTS = {
    "position-based": by_position,
    "position-based, trust in top ranks": with_trust,
    "read down, leave after half of the clicks": reading_down(0.5, 0.9),
    "read down to the first click": reading_down(0.0, 1.0),
}


def biased_users(questions: int = 200, documents: int = 10) -> Table:
    """Users who do not follow the click models, and rankings that change from day to day."""
    rows = []
    for title, users in USERS_OF_RESULTS.items():
        for impressions in (300, 3000):
            rng = np.random.default_rng(5)
            attraction = rng.beta(1, 4, (questions, documents))
            counts = np.zeros((2, questions * documents, documents))
            for question, own in enumerate(attraction):
                scores = np.log(own) + rng.normal(0, 1, documents) + rng.normal(0, 0.3, (impressions, documents))
                order = np.argsort(-scores, axis=1)
                cells = question * documents + order, np.broadcast_to(np.arange(documents), order.shape)
                np.add.at(counts[0], cells, 1)
                np.add.at(counts[1], cells, users(rng, own[order]))
            pair, place = np.nonzero(counts[0])
            columns = pair, place + 1, counts[0, pair, place], counts[1, pair, place]
            fit, coec = stats.fit_position_model(*columns), stats.expected_clicks(*columns)
            mean = float((fit.attraction * fit.examined).sum() / fit.examined.sum())
            true = attraction.ravel() / float((attraction.ravel() * fit.examined).sum() / fit.examined.sum())
            usual = (coec.expected >= 1) & (true >= 0.25)
            for name, ratio in (("position", fit.attraction / mean), ("coec", coec.ratio)):
                factor = (ratio / true)[usual]
                low, middle, high = np.quantile(factor, (0.05, 0.5, 0.95))
                inside = [
                    f"{((fit.low / mean / wider <= true) & (true <= fit.high / mean * wider))[usual].mean():.0%}"
                    for wider in (1, 2)
                ]
                rows.append(
                    (
                        title,
                        f"{impressions:,}",
                        name,
                        f"{middle:.2f}",
                        f"{low:.2f} to {high:.2f}",
                        *(inside if name == "position" else ("", "withheld")),
                    )
                )
    head = ("users", "impressions", "model", "ratio / true ratio", "of 90% of documents", "95% intervals", "widened")
    return Table(head, tuple(rows))


def main() -> None:
    """Print all tables."""
    for table in (false_alarms, power, interleaving, click_models, biased_users):
        sys.stdout.write(to_markdown(table()) + "\n")


if __name__ == "__main__":
    main()
