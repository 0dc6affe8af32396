"""Accuracy of estimated relevance and agreement: simulated and real judgments, in Markdown.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/judging_simulations.py [--write]

``--write`` writes the tables into docs/explain/judging-simulations.md. The folder contains
``preferences/llmfao.csv`` and ``codesearchnet-annotations/annotationStore.csv``. All seeds are
fixed.
"""

import csv
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from page_tables import write_tables

from rankgauge.judging import (
    Choice,
    Judgment,
    Presentation,
    QuestionState,
    fit_question,
    is_resolved,
    measure_agreement,
    next_documents,
    split_documents,
)
from rankgauge.judging.tasks import CARELESS
from rankgauge.rendering.tables import Table
from rankgauge.stats import Agreement, fit_plackett_luce, krippendorff_alpha, none_rates

PAGE = Path(__file__).parents[1] / "explain" / "judging-simulations.md"
DOCUMENTS, SHOWN = 8, 3
TASKS = (8, 16, 20, 32)
MOST = 120  # tasks of a question that is judged until it is resolved
RANDOM = 0.15  # share of random sets among active ones
JUDGES = 6  # who judge a question, each a random task
LAPSES, FIRST = 0.05, 0.5  # of the judge who does not follow the Plackett-Luce model
WIDE = 30.0  # prior sd in the check of the fit
NAMES = tuple("abcdefgh")
# A judge maps the utilities of the documents, in the order shown, and the own number to the chosen place or -1.
Judge = Callable[[np.ndarray, np.random.Generator, int], int]


def by_model(utilities: np.ndarray, rng: np.random.Generator, _number: int = 0) -> int:
    """Choose by Plackett-Luce: the maximum of utilities with Gumbel noise; "none" has utility 0."""
    noisy = np.append(utilities, 0.0) + rng.gumbel(size=len(utilities) + 1)
    best = int(noisy.argmax())
    return best if best < len(utilities) else -1


def biased(share: float = 0.0, careless: str = "at random", *, first: float = 0.0, judges: int = JUDGES) -> Judge:
    """Return judges who prefer the first document, and of whom some answer a share carelessly."""

    def choose(utilities: np.ndarray, rng: np.random.Generator, number: int = 0) -> int:
        if number < judges and rng.random() < share:
            return {"at random": int(rng.integers(-1, len(utilities))), "none": -1, "first": 0}[careless]
        seen = utilities.copy()
        seen[0] += first
        return by_model(seen, rng)

    return choose


def by_threshold(utilities: np.ndarray, rng: np.random.Generator, _number: int = 0) -> int:
    """Pick the best, or none if it is too bad; with lapses and a preference for the first."""
    if rng.random() < LAPSES:
        return int(rng.integers(-1, len(utilities)))
    seen = utilities + rng.gumbel(size=len(utilities)) - np.euler_gamma
    seen[0] += FIRST
    best = int(seen.argmax())
    return best if utilities[best] + rng.logistic() > 0 else -1


BIASED = {
    "follow the model": by_model,
    "10% of answers at random": biased(0.1),
    "20% of answers at random": biased(0.2),
    "60% of one judge's answers at random": biased(0.6, judges=1),
    "10% of answers none": biased(0.1, "none"),
    "10% of answers the first": biased(0.1, "first"),
    "first preferred by 1": biased(first=1.0),
    "best, then threshold": by_threshold,
}


# Rows of the table of split documents, in which no document is.
SAME = (
    "follow the model",
    "10% of answers at random",
    "60% of one judge's answers at random",
    "first preferred by 1",
    "best, then threshold",
)


def draw_utilities(rng: np.random.Generator) -> np.ndarray:
    """Return utilities: up to five documents at 3, two at 0.7, and others at -3, each ± 0.5."""
    good = int(rng.integers(6))
    centers = np.array([3.0] * good + [0.7] * 2 + [-3.0] * (DOCUMENTS - 2 - good))
    return rng.permutation(centers + rng.normal(0, 0.5, DOCUMENTS))


@dataclass
class Outcome:
    """Results of a design, pooled over questions."""

    truth: list[np.ndarray] = field(default_factory=list)
    fit: list[np.ndarray] = field(default_factory=list)
    share: list[np.ndarray] = field(default_factory=list)
    inside: list[np.ndarray] = field(default_factory=list)
    inside_careful: list[np.ndarray] = field(default_factory=list)
    above: list[np.ndarray] = field(default_factory=list)
    tasks: list[int] = field(default_factory=list)
    predicted: list[float] = field(default_factory=list)
    none: list[bool] = field(default_factory=list)

    def concordance(self, values: list[np.ndarray]) -> float:
        """Return the share of clearly different pairs within a question in the right order."""
        right = total = 0.0
        for true, found in zip(self.truth, values, strict=True):
            clear = true[:, None] - true > 1
            ahead = found[:, None] - found
            right += ((ahead > 0) + 0.5 * (ahead == 0))[clear].sum()
            total += clear.sum()
        return right / total

    def auc(self, values: list[np.ndarray]) -> float:
        """Return the probability that a relevant document ranks above a nonrelevant one."""
        true, found = np.concatenate(self.truth) > 0, np.concatenate(values)
        ahead = found[true][:, None] - found[~true]
        return float(((ahead > 0) + 0.5 * (ahead == 0)).mean())

    def error(self, values: list[np.ndarray]) -> float:
        """Return the mean absolute difference from the true relevance."""
        true = 1 / (1 + np.exp(-np.concatenate(self.truth)))
        return float(np.abs(np.concatenate(values) - true).mean())

    def coverage(self, inside: list[np.ndarray] | None = None) -> float:
        """Return how often the 95% interval includes the true relevance."""
        return float(np.concatenate(inside or self.inside).mean())

    def resolved(self, fits: int = len(CARELESS)) -> tuple[float, float]:
        """Return the share of clear documents by the first fits, and the share of these on the right side."""
        above, true = np.concatenate(self.above, axis=1)[:fits], np.concatenate(self.truth) > 0
        clear = (above < 0.05).all(axis=0) | (above > 0.95).all(axis=0)
        return float(clear.mean()), float(((above[0] > 0.5) == true)[clear].mean())

    def precision_and_recall(self) -> tuple[float, float]:
        """Return precision and recall of documents with a fitted relevance above 0.5."""
        found, true = np.concatenate(self.fit) > 0.5, np.concatenate(self.truth) > 0
        return float(true[found].mean()), float(found[true].mean())


def is_resolved_if_careful(state: QuestionState) -> bool:
    """Return whether the question is resolved if no answer is careless."""
    above = fit_question(state)[1].probability_above()
    return min(state.shown[name] for name in NAMES) > 1 and bool(((above < 0.05) | (above > 0.95)).all())


def judge_question(design: str, tasks: int, judge: Judge, utilities: np.ndarray, *, seed: int) -> QuestionState:
    """Simulate the judging of one question; ``adaptive`` and ``careful`` end when it is resolved.

    `utilities` are those of all judges, or a row for each.
    """
    rng = np.random.default_rng([seed, 1])
    draws, people = random.Random(seed), random.Random(seed)  # noqa: S311 - a simulation
    # Each of many judges sees a set at most once, so no set is excluded.
    state = QuestionState(NAMES)
    for _ in range(tasks):
        shown = next_documents(
            state,
            SHOWN,
            views=2 if design in {"active", "adaptive", "careful"} else tasks,
            at_random=design == "random" or (design != "balanced" and draws.random() < RANDOM),
            rng=draws,
        )
        shown = tuple(draws.sample(shown, len(shown)))
        number = people.randrange(len(utilities) if utilities.ndim > 1 else JUDGES)
        seen = utilities[number] if utilities.ndim > 1 else utilities
        place = judge(seen[[NAMES.index(name) for name in shown]], rng, number)
        best = (shown[place],) if place >= 0 else ()
        state = QuestionState(NAMES, (*state.judgments, (shown, best)), judges=(*state.judges, str(number)))
        if (design == "adaptive" and is_resolved(state)) or (design == "careful" and is_resolved_if_careful(state)):
            break
    return state


def simulate(design: str, tasks: int, judge: Judge, questions: int, *, seed: int = 0) -> Outcome:
    """Judge this many questions with a design, and compare the estimates with the truth."""
    found = Outcome()
    for number in range(questions):
        utilities = draw_utilities(np.random.default_rng([seed, number]))
        state = judge_question(design, tasks, judge, utilities, seed=10_007 * seed + number)
        fits = [fit_question(state, careless=careless)[1] for careless in CARELESS]
        fit = fits[0]
        bounds = [each.relevance_interval() for each in fits]
        low, high = np.min([each for each, _ in bounds], axis=0), np.max([each for _, each in bounds], axis=0)
        true = 1 / (1 + np.exp(-utilities))
        shown = np.array([state.shown[name] for name in NAMES])
        chosen = np.array([sum(name in best for _, best in state.judgments) for name in NAMES])
        found.truth.append(utilities)
        found.fit.append(fit.relevance)
        found.share.append(chosen / np.maximum(shown, 1))
        found.inside.append((low <= true) & (true <= high))
        found.inside_careful.append((bounds[0][0] <= true) & (true <= bounds[0][1]))
        found.above.append(np.array([each.probability_above() for each in fits]))
        found.tasks.append(len(state.judgments))
        sets = [[NAMES.index(name) for name in each] for each, _ in state.judgments]
        found.predicted += fit_question(state, prior_sd=WIDE)[1].none_probability(sets).tolist()
        found.none += [not best for _, best in state.judgments]
    return found


def designs(judge: Judge, questions: int) -> Table:
    """Return a row for each design and number of tasks, without allowance for careless answers."""
    rows = []
    for design in ("random", "balanced", "active", "careful"):
        for tasks in TASKS if design != "careful" else (MOST,):
            found = simulate(design, tasks, judge, questions)
            clear, right = found.resolved(fits=1)
            precision, recall = found.precision_and_recall()
            rows.append(
                (
                    design if design != "careful" else "active, until resolved",
                    f"{np.mean(found.tasks):.0f}",
                    *(
                        f"{measure(found.fit):.3f} / {measure(found.share):.3f}"
                        for measure in (found.concordance, found.auc, found.error)
                    ),
                    _percent(found.coverage(found.inside_careful)),
                    _percent(clear),
                    _percent(right),
                    f"{precision:.2f} / {recall:.2f}",
                )
            )
    return Table(
        columns=(
            "design",
            "tasks",
            "concordance fit / share",
            "AUC fit / share",
            "error fit / share",
            "coverage",
            "resolved",
            "of these right",
            "precision / recall",
        ),
        rows=tuple(rows),
    )


def careless(questions: int) -> Table:
    """Return a row for each kind of judge and each end of the judging."""
    rows = []
    for name, judge in BIASED.items():
        for design, tasks, title in (("active", 16, "16 tasks"), ("adaptive", MOST, "until resolved")):
            found = simulate(design, tasks, judge, questions)
            clear, right = found.resolved()
            rows.append(
                (
                    name,
                    title,
                    f"{np.mean(found.tasks):.0f}",
                    _percent(found.coverage(found.inside_careful)),
                    _percent(found.coverage()),
                    _percent(clear),
                    _percent(right),
                )
            )
    head = ("judges", "end", "tasks", "coverage without allowance", "coverage", "resolved", "of these right")
    return Table(columns=head, rows=tuple(rows))


def split_rates(questions: int) -> Table:
    """Return how often the documents of a question are found to be split."""
    rows = []
    for name, judge, judges, others in (
        *((f"6 who {name}" if name == "follow the model" else name, BIASED[name], 6, 0) for name in SAME),
        ("3 of 6 disagree on one document", by_model, 6, 3),
        ("2 of 6 disagree on one document", by_model, 6, 2),
        ("2 of 4 disagree on one document", by_model, 4, 2),
        ("3 of 6 disagree on one document, 10% of answers at random", biased(0.1), 6, 3),
    ):
        rates = []
        for tasks in (16, 32, 64, 96):
            hits = 0
            for number in range(questions):
                utilities = np.tile(draw_utilities(np.random.default_rng([5, number])), (judges, 1))
                if others:
                    utilities[:, 0] = 3.0
                    utilities[:others, 0] = -3.0
                split = split_documents(judge_question("balanced", tasks, judge, utilities, seed=20_011 + number))
                hits += NAMES[0] in split if others else bool(split)
            rates.append(_percent(hits / questions))
        rows.append((name, *rates))
    return Table(columns=("judges", *(f"{tasks} tasks" for tasks in (16, 32, 64, 96))), rows=tuple(rows))


def fit_checks(questions: int) -> Table:
    """Return observed and predicted "none" by the quality of the set, for both judges."""
    rows = []
    for name, judge in (("Plackett-Luce", by_model), ("best, then threshold", by_threshold)):
        found = simulate("balanced", 16, judge, questions)
        rows += [
            (
                name,
                f"{rate.low:.1f} to {rate.high:.1f}",
                str(rate.sets),
                _percent(rate.predicted),
                _percent(rate.observed),
            )
            for rate in none_rates(found.predicted, found.none)
        ]
    columns = ("judge", "predicted none", "sets", "mean prediction", "observed")
    return Table(columns=columns, rows=tuple(rows))


# ---- agreement


def draw_answers(rng: np.random.Generator, tasks: int, judges: int, *, none: float, right: float) -> np.ndarray:
    """Return (tasks, judges) places, -1 for none: the truth with probability `right`."""

    def guess(count: int) -> np.ndarray:
        return np.where(rng.random((tasks, count)) < none, -1, rng.integers(0, SHOWN, (tasks, count)))

    return np.where(rng.random((tasks, judges)) < right, guess(1), guess(judges)).astype(float)


def guessing(runs: int) -> Table:
    """Return alpha of three guessing judges, with places and with identifiers as labels."""
    rows = []
    for none in (0.1, 0.5, 0.85):
        rng = np.random.default_rng([int(100 * none), 2])
        found = []
        for _ in range(runs):
            places = draw_answers(rng, 150, 3, none=none, right=0.0)
            labels = np.where(places < 0, -1, places + SHOWN * np.arange(150)[:, None])
            same = np.mean([places[:, i] == places[:, j] for i, j in ((0, 1), (0, 2), (1, 2))])
            found.append((same, *(krippendorff_alpha(x, draws=0).value for x in (places, labels))))
        same, by_place, by_label = np.mean(found, axis=0)
        rows.append((_percent(none), _percent(same), f"{by_place:+.3f}", f"{by_label:+.3f}"))
    return Table(
        columns=("none by chance", "agreement", "alpha, places", "alpha, identifiers as labels"), rows=tuple(rows)
    )


def alpha_coverage(runs: int, draws: int = 400) -> Table:
    """Return how often the bootstrap interval of alpha includes the alpha of a very long study."""
    rows = []
    for tasks, judges in ((25, 2), (50, 2), (100, 2), (200, 2), (400, 2), (150, 3)):
        rng = np.random.default_rng([tasks, judges, 3])
        truth = krippendorff_alpha(draw_answers(rng, 200_000, judges, none=0.4, right=0.7), draws=0).value
        found = [
            krippendorff_alpha(draw_answers(rng, tasks, judges, none=0.4, right=0.7), draws=draws, seed=run)
            for run in range(runs)
        ]
        inside = [each.low <= truth <= each.high for each in found]
        half = np.mean([(each.high - each.low) / 2 for each in found])
        rows.append((str(tasks), str(judges), f"{truth:.2f}", _percent(np.mean(inside)), f"± {half:.2f}"))
    columns = ("tasks", "judges", "true alpha", "coverage", "half-width")
    return Table(columns=columns, rows=tuple(rows))


# ---- real judgments


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def preferences(data: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the fit and the agreement of people who compared answers of 59 language models."""
    rows = _read(data / "preferences" / "llmfao.csv")
    golden = {
        each["item"]: float(each["score"])
        for each in _read(data / "preferences" / "llmfao-golden.csv")
        if each["algorithm"] == "bradley_terry"
    }
    items = sorted(golden)
    sets, picks, weights = [], [], []
    for row in rows:
        pair = [items.index(row["left"]), items.index(row["right"])]
        # A tie is half a win for each side.
        won = pair if row["winner"] == "tie" else [items.index(row[row["winner"]])]
        sets += [pair] * len(won)
        picks += won
        weights += [1 / len(won)] * len(won)
    settings = {"weights": weights, "none_offered": False}
    strengths = np.array([golden[item] for item in items])
    wide = fit_plackett_luce(len(items), sets, picks, prior_sd=1000.0, **settings)
    found = np.exp(wide.utilities - wide.utilities.max())
    apart = float(np.abs(found / found.sum() - strengths / strengths.sum()).max())
    yield "choices of pairs (ties included)", f"{len(rows):,}", "llmfao.csv"
    yield ("largest difference from the published Bradley-Terry strengths", f"{apart:.1e}", "prior sd 1000")
    usual = fit_plackett_luce(len(items), sets, picks, **settings)
    order = lambda fit: np.argsort(np.argsort(-fit.utilities))  # noqa: E731
    moved = int(np.abs(order(usual) - order(wide)).max())
    yield "largest change of a rank by the default prior", str(moved), f"of {len(items)} models"
    tasks: dict[str, list[float]] = defaultdict(list)
    codes = {"left": 0.0, "right": 1.0, "tie": 2.0}
    for row in rows:
        tasks[row["id"]].append(codes[row["winner"]])
    alpha = krippendorff_alpha(padded(tasks))
    yield ("alpha of left, right, tie", _interval(alpha), f"{alpha.units:,} pairs, {alpha.ratings:,} answers")
    decided = {name: [x for x in said if x < 2] for name, said in tasks.items()}
    alpha = krippendorff_alpha(padded(decided))
    yield ("alpha of left, right", _interval(alpha), f"{alpha.units:,} pairs, {alpha.ratings:,} answers")


def annotations(data: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the agreement of people who graded functions found for a query, 0 to 3."""
    rows = _read(data / "codesearchnet-annotations" / "annotationStore.csv")
    seen: dict[tuple[str, str], list[int]] = defaultdict(list)
    judgments = []
    for number, row in enumerate(rows):
        key = (f"{row['Language']}: {row['Query']}", row["GitHubUrl"])
        seen[key].append(int(row["Relevance"]))
        # The file does not name its raters, so they are numbered within a document.
        rater, name = f"rater {len(seen[key])}", str(number)
        shown = Presentation(name, key[0], (key[1],), rater, "graded", "import")
        choice = Choice(name, name, rater, "graded", grades=(int(row["Relevance"]),))
        judgments.append(Judgment(shown, choice, "counted"))
    found = measure_agreement(judgments, {})
    yield "grades", f"{len(rows):,}", "annotationStore.csv"
    alpha = found.estimate(scale="grades")
    yield "alpha, ordinal", _interval(alpha), f"{alpha.units:,} documents, {alpha.ratings:,} grades"
    same = found.estimate("percent agreement", scale="grades")
    yield "agreement", _interval(same), f"{same.units:,} documents"
    table = padded(seen)
    yield "alpha, interval", _interval(krippendorff_alpha(table, "interval")), "the same"
    yield "alpha, nominal", _interval(krippendorff_alpha(table)), "the same"


def padded(units: dict) -> np.ndarray:
    """Return a row for each unit, padded with NaN."""
    width = max(map(len, units.values()))
    return np.array([[*said, *[np.nan] * (width - len(said))] for said in units.values()], float)


def _interval(found: Agreement) -> str:
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def tables(data: Path, questions: int = 1000, runs: int = 1000) -> Iterator[tuple[str, Table]]:
    """Yield the name and table of each section of the page."""
    yield "model", designs(by_model, questions)
    yield "careless", careless(questions // 20)
    yield "split", split_rates(questions // 5)
    yield "checks", fit_checks(questions)
    yield "guessing", guessing(runs)
    yield "alpha", alpha_coverage(runs)
    columns = ("quantity", "value", "data")
    yield "preferences", Table(columns=columns, rows=tuple(preferences(data)))
    yield "annotations", Table(columns=columns, rows=tuple(annotations(data)))


if __name__ == "__main__":
    write_tables(tables, PAGE)
