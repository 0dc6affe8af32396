"""Error rates of the drift test of evaluation sets, and accuracy of its verdicts.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/drift_rates.py [--write] [--runs 1000]

``--write`` writes the tables into docs/explain/drift.md. The folder contains ``drift``. All seeds
are fixed.
"""

import argparse
import gzip
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np

from rankgauge.production.distinct_questions import embed, normalized
from rankgauge.production.drift import measure_drift
from rankgauge.rendering.tables import Table, to_markdown
from rankgauge.stats.two_sample import LabelScores

DATA = Path(os.environ.get("RANKGAUGE_TEST_DATA", ""), "drift")
PAGE = Path(__file__).parents[1] / "explain" / "drift.md"
PERMUTATIONS = 199
# Numbers of evaluation questions and log questions in each draw.
SIZES = ((150, 500), (100, 300), (50, 1000), (500, 150), (300, 1500))
PAIRS = (
    ("no-drift-msmarco-halves", "eval.jsonl", "production.jsonl", "none"),
    ("partial-drift-20pct", "eval.jsonl", "production.jsonl", "20% of the log"),
    ("adhoc-topics-vs-web-log", "eval.jsonl", "production.jsonl", "strong"),
    ("web-2016-vs-2024", "eval.jsonl.gz", "production.jsonl", "moderate (RAG 2024)"),
    ("web-2016-vs-2024", "eval.jsonl.gz", "production_researchy.jsonl", "moderate (researchy)"),
    ("ecommerce-queryset-vs-ubi-log", "eval.jsonl", "production.jsonl", "some"),
)
# Simulated shares of questions that only one side has.
LOST = 0.3
OFF_TOPIC = 0.5

Sets: TypeAlias = tuple[list[str], list[str]]


def questions(*path: str) -> list[str]:
    """Return the distinct questions of a file."""
    file = DATA.joinpath(*path)
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as stream:
        texts = [json.loads(line)["text"] for line in stream]
    return list({normalized(text): text for text in texts}.values())


def drawn(rng: np.random.Generator, texts: list[str], count: int) -> list[str]:
    """Return a random sample of texts, in random order."""
    return [texts[n] for n in rng.permutation(len(texts))[:count]]


def tested(ours: list[str], theirs: list[str], seed: int) -> tuple[float, list[float], list[tuple[float, float]]]:
    """Return the p-value, the areas under the curve, and their intervals."""
    points = embed((*ours, *theirs), None, seed).points
    labels = np.arange(len(points)) < len(ours)
    test = LabelScores(points, seed).test(labels, PERMUTATIONS, seed)
    return test.p, [area.value for area in test.areas], [(a.low, a.high) for a in test.areas]


def size_table(runs: int) -> Table:
    """Return the false alarms on random halves of MS MARCO."""
    pool = questions(PAIRS[0][0], PAIRS[0][1]) + questions(PAIRS[0][0], PAIRS[0][2])
    pool = list({normalized(text): text for text in pool}.values())
    rows = []
    for number, (ours, theirs) in enumerate(SIZES):
        count = runs if not number else max(20, runs // 4)
        p = []
        for seed in range(count):
            some = drawn(np.random.default_rng([20, number, seed]), pool, ours + theirs)
            p.append(tested(some[:ours], some[ours:], seed)[0])
        alarms = np.mean(np.array(p) <= 0.05)
        rows.append((ours, theirs, count, f"{alarms:.1%}", f"{np.mean(np.array(p) <= 0.2):.1%}"))
        sys.stdout.write(f"{rows[-1]}\n")
    return Table(("evaluation", "log", "runs", "p ≤ 0.05", "p ≤ 0.2"), tuple(rows))


def power_table(runs: int) -> Table:
    """Return the power on the other pairs, with 150 evaluation and 500 log questions."""
    rows = []
    for number, (name, first, second, expected) in enumerate(PAIRS):
        ours, theirs = questions(name, first), questions(name, second)
        known = set(map(normalized, ours))
        theirs = [text for text in theirs if normalized(text) not in known]
        found, areas, bounds = [], [], []
        for seed in range(runs):
            rng = np.random.default_rng([21, number, seed])
            p, area, bound = tested(drawn(rng, ours, 150), drawn(rng, theirs, 500), seed)
            found.append(p <= 0.05)
            areas.append(area)
            bounds.append(bound)
        mean = np.mean(areas, axis=0)
        low, high = np.array(bounds)[:, :, 0], np.array(bounds)[:, :, 1]
        covered = ((low <= mean) & (mean <= high)).mean(axis=0)
        rows.append(
            (
                f"{name}, {second}" if "researchy" in second else name,
                expected,
                f"{min(150, len(ours))} / {min(500, len(theirs))}",
                f"{np.mean(found):.0%}",
                *(f"{a:.2f} ({c:.0%})" for a, c in zip(mean, covered, strict=True)),
            )
        )
        sys.stdout.write(f"{rows[-1]}\n")
    heads = ("pair", "expected", "questions", "found", "AUC ridge", "AUC neighbors")
    return Table(heads, tuple(rows))


# ---- simulated truths


def simulated_sets() -> dict[str, Callable[[np.random.Generator, int, int], Sets]]:
    """Return, for each expected verdict, a function that draws both sets."""
    web = questions("adhoc-topics-vs-web-log", "production.jsonl")
    half = questions(*PAIRS[0][:2]) + questions(PAIRS[0][0], PAIRS[0][2])
    half = list({normalized(text): text for text in half}.values())

    def mixed(rng: np.random.Generator, ours: int, theirs: int) -> Sets:
        some = drawn(rng, half, ours + theirs)
        return some[:ours], some[ours:]

    def missing(rng: np.random.Generator, ours: int, theirs: int) -> Sets:
        some = drawn(rng, half, ours + theirs - round(LOST * theirs))
        return some[:ours], some[ours:] + drawn(rng, web, round(LOST * theirs))

    def separated(rng: np.random.Generator, ours: int, theirs: int) -> Sets:
        some = drawn(rng, half, ours + theirs)
        other = round(OFF_TOPIC * ours)
        return some[other:ours] + drawn(rng, web, other), some[ours:]

    def reworded(rng: np.random.Generator, ours: int, theirs: int) -> Sets:
        starts = ("please tell me ", "i would like to know ", "can you explain ")
        some = drawn(rng, half, ours + theirs)
        return [starts[rng.integers(3)] + text for text in some[:ours]], some[ours:]

    return {"mixed": mixed, "missing": missing, "separated": separated, "reworded": reworded}


def verdict_table(runs: int) -> Table:
    """Return how often each verdict follows from each simulated truth."""
    verdicts = ("mixed", "missing", "separated", "reworded", "cannot tell")
    rows = []
    for sizes in ((150, 500), (500, 2000)):
        for truth, draw in simulated_sets().items():
            counts = Counter(
                measure_drift(
                    *draw(np.random.default_rng([22, sizes[0], seed]), *sizes), permutations=PERMUTATIONS, seed=seed
                ).verdict
                for seed in range(runs if sizes[0] < 500 else runs // 2)
            )
            shares = (f"{counts[name] / counts.total():.0%}" for name in verdicts)
            rows.append((f"{sizes[0]} / {sizes[1]}", truth, *shares))
            sys.stdout.write(f"{rows[-1]}\n")
    return Table(("questions", "truth", *verdicts), tuple(rows))


def main() -> None:
    """Run the simulations and write the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", choices=("size", "power", "verdicts"))
    given = parser.parse_args()
    if not DATA.is_dir():
        sys.exit("set RANKGAUGE_TEST_DATA to the folder that contains drift/")
    made = {
        "size": lambda: size_table(given.runs),
        "power": lambda: power_table(max(10, given.runs // 10)),
        "verdicts": lambda: verdict_table(max(10, given.runs // 10)),
    }
    for name, make in made.items():
        if given.only not in {None, name}:
            continue
        text = to_markdown(make())
        sys.stdout.write(text)
        if given.write:
            page = PAGE.read_text(encoding="utf-8")
            pattern = rf"(?s)(<!-- table: {name} -->\n\n).*?(\n<!-- end -->)"
            page = re.sub(pattern, lambda at: at[1] + text + at[2], page)  # noqa: B023 - at once
            PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
