"""Error rates of the drift test of evaluation sets, and accuracy of its verdicts.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/drift_rates.py [--write] [--runs 1000]
        [--encoder tfidf --encoder hashing --encoder model2vec:FOLDER]

``--write`` writes the tables into docs/explain/drift.md. The folder contains ``drift``, ``cranfield``, and
``rag``. All seeds are fixed.
"""

import argparse
import gzip
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from rankgauge.production.distinct_questions import embed, normalized
from rankgauge.production.drift import measure_drift
from rankgauge.rendering.tables import Table, to_markdown
from rankgauge.stats.two_sample import LabelScores

DATA = Path(os.environ.get("RANKGAUGE_TEST_DATA", ""))
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
# Words of topics within MS MARCO. The method was chosen on others: law, technology, biology, food, and entertainment.
TOPICS = {
    "health": r"symptoms?|disease\w*|pain|doctor|drugs?|medic\w*|treat\w*|cancer|blood|infection\w*|surgery|vitamins?"
    r"|pregnan\w*|diabet\w*|virus\w*|heart|diet|therapy|syndrome|dose|dosage|side effects?|disorder\w*|skin|muscles?"
    r"|vaccin\w*|weight|fever|allerg\w*",
    "money": r"cost|costs|price\w*|pay|paid|salary|salaries|tax\w*|loans?|credit|mortgage|bank\w*|insurance|income"
    r"|wages?|rates?|stocks?|invest\w*|fees?|money|dollars?|budget|debt|401k|ira|refund|earn|earnings|much does"
    r"|interest",
    "places": r"county|city|cities|state|states|country|countries|river|island|mountain\w*|capital|located|zip code"
    r"|population|where is|texas|california|florida|ny|airport|beach|lake|ocean|africa|europe|india|china|map|weather"
    r"|temperature|miles",
}
# The words with which questions open.
OPENING = (
    r"^((what|how|who|when|where|why|which|is|are|was|were|does|do|did|can|should|much|many|long|often|to|the|a|an|you|i"
    r"|it|if|of)\b['\w]*\s*)+"
)
VERDICTS = ("mixed", "missing", "separated", "reworded", "cannot tell")

Sets: TypeAlias = tuple[list[str], list[str]]
Sizes: TypeAlias = tuple[int, int]


def questions(*path: str) -> list[str]:
    """Return the distinct questions of a file in ``drift``."""
    file = DATA.joinpath("drift", *path)
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    texts = [row.get("text") or row["question"] for row in rows]
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


def simulated_sets() -> dict[str, list[Callable[[np.random.Generator, Sizes], Sets]]]:
    """Return, for each truth, functions that draw both sets."""
    marco = questions(*PAIRS[0][:2]) + questions(PAIRS[0][0], PAIRS[0][2])
    web = questions("adhoc-topics-vs-web-log", "production.jsonl")
    recent = questions("web-2016-vs-2024", "production.jsonl")
    aeronautics, libraries = (questions("..", name, "queries.jsonl") for name in ("cranfield", "cisi"))
    words = [[text for text in marco if re.search(rf"\b({topic})\b", text)] for topic in TOPICS.values()]

    def same(pool: list[str], rng: np.random.Generator, sizes: Sizes) -> Sets:
        some = drawn(rng, pool, sum(sizes))
        return some[: sizes[0]], some[sizes[0] :]

    def planted(topic: list[str], counts: Sizes, rng: np.random.Generator, sizes: Sizes) -> Sets:
        """Draw both sets without the topic, but for these numbers of questions about it."""
        own = set(topic)
        others = [text for text in marco if text not in own]
        first, second = same(others, rng, (sizes[0] - counts[0], sizes[1] - counts[1]))
        return first + drawn(rng, topic, counts[0]), second + drawn(rng, topic, counts[1])

    def missing(topic: list[str], share: float, rng: np.random.Generator, sizes: Sizes) -> Sets:
        return planted(topic, (0, round(share * sizes[1])), rng, sizes)

    def separated(topic: list[str], share: float, rng: np.random.Generator, sizes: Sizes) -> Sets:
        return planted(topic, (round(share * sizes[0]), 0), rng, sizes)

    def prefixed(rng: np.random.Generator, sizes: Sizes) -> Sets:
        starts = ("please tell me ", "i would like to know ", "can you explain ")
        first, second = same(marco, rng, sizes)
        return [starts[rng.integers(3)] + text for text in first], second

    def keywords(rng: np.random.Generator, sizes: Sizes) -> Sets:
        """Draw questions as people asked them, and others without their first words, such as "what is the"."""
        whole = [text for text in marco if re.match(OPENING, text)]
        first, second = same(whole, rng, sizes)
        return first, [re.sub(OPENING, "", text) or text for text in second]

    return {
        "same population": [partial(same, marco), partial(same, web)],
        "10% of the log missing": [partial(missing, topic, 0.1) for topic in (*words, recent)],
        "30% of the log missing": [partial(missing, topic, 0.3) for topic in words],
        "half of the evaluation set off topic": [partial(separated, topic, 0.5) for topic in words],
        "all of the evaluation set off topic": [
            partial(separated, topic, 1.0) for topic in (*words, aeronautics, libraries)
        ],
        "reworded": [prefixed, keywords],
    }


def verdict_table(runs: int, encoders: Sequence[str], sizes: Sizes = (500, 1500)) -> Table:
    """Return how often each verdict follows from each simulated truth, with twice as many draws without drift."""
    rows = []
    for encoder in encoders:
        for truth, draws in simulated_sets().items():
            counts: Counter[str] = Counter()
            count = 2 * runs if truth == "same population" else runs
            for seed in range(count):
                sets = draws[seed % len(draws)](np.random.default_rng([23, seed]), sizes)
                counts[measure_drift(*sets, encoder=encoder, permutations=PERMUTATIONS, seed=seed).verdict] += 1
            shares = (f"{counts[name] / count:.0%}" for name in VERDICTS)
            rows.append((encoder.partition(":")[0], truth, count, *shares))
            sys.stdout.write(f"{rows[-1]}\n")
            sys.stdout.flush()
    return Table(("encoder", "truth", "draws", *VERDICTS), tuple(rows))


def main() -> None:
    """Run the simulations and write the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", choices=("size", "power", "verdicts"))
    parser.add_argument("--encoder", action="append")
    given = parser.parse_args()
    if not DATA.is_dir():
        sys.exit("set RANKGAUGE_TEST_DATA to the folder that contains drift/")
    made = {
        "size": lambda: size_table(given.runs),
        "power": lambda: power_table(max(10, given.runs // 10)),
        "verdicts": lambda: verdict_table(max(10, given.runs // 10), given.encoder or ["tfidf", "hashing"]),
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
