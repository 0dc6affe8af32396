"""False verdicts if judging stops at the first verdict: a simulation, as a table of a page.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/optional_stopping.py [--write]

The folder contains ``<collection>/runs/*.run.gz`` and judgments. Both runs of a pair are swapped in
each query with probability 1/2, so that there is no true difference. Half of the judgments of the
documents in the first ten ranks are hidden, and revealed one by one in random order.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from page_tables import write_tables

import rankgauge
from rankgauge.comparison.differences import SURE, Computation, Design
from rankgauge.rendering.tables import Table

PAGE = Path(__file__).parents[1] / "howto" / "unjudged.md"
PAIRS = {
    "Cranfield: BM25, MiniLM": ("cranfield/trec/qrels.txt", "bm25-lucene-k0.9-b0.4-stem", "minilm-l6-v2-cosine"),
    "CISI: BM25, MiniLM": ("cisi/trec/qrels.txt", "bm25-lucene-k0.9-b0.4-stem", "minilm-l6-v2-cosine"),
    "NPL: BM25, BM25": ("npl/trec/qrels.txt", "bm25-lucene-k0.9-b0.4-stem", "bm25-robertson-k1.5-b0.75-nostem"),
}
QUERIES, DRAWS, SEED = (25, 50, 100), 500, 7
K, HIDDEN, FLIPS, ALPHA = 10, 0.5, 999, 0.05
# The fast test only selects the differences for which `compare` is called.
NEAR = 0.08
DISCOUNTS = [1 / math.log2(rank + 2) for rank in range(K)]
DESIGN = Design(("nDCG@10",), baseline="a")


def pair(data: Path, name: str) -> list[tuple[tuple[list[float], list[float]], list[float]]]:
    """Return for each query the documents of both rankings, with their grades, and all grades."""
    path, *runs = PAIRS[name]
    qrels = rankgauge.read_qrels(data / path)
    folder = data / path.split("/", maxsplit=1)[0] / "runs"
    tops = [rankgauge.cut(folder / f"{run}.run.gz", K) for run in runs]
    return [(tuple(list(top.get(query, {})) for top in tops), dict(grades)) for query, grades in qrels.items()]


def ndcg(ranking: list[str], grades: dict[str, float]) -> float:
    """Return nDCG@10 of a ranking."""
    gains = [max(grades.get(document, 0.0), 0.0) for document in ranking]
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:K]
    ideal = sum(map(math.prod, zip(best, DISCOUNTS, strict=False)))
    return sum(map(math.prod, zip(gains, DISCOUNTS, strict=False))) / ideal if ideal else 0.0


def is_sure(moved: np.ndarray) -> bool:
    """Return whether `compare` says that one run is better."""
    ids = range(len(moved))
    runs = [
        rankgauge.Evaluation.from_values(name, ids, {"nDCG@10": values})
        for name, values in (("a", 0 * moved), ("b", moved))
    ]
    return next(Computation(runs, DESIGN).differences()).verdict in SURE


def judging(queries: list, number: int, rng: np.random.Generator) -> tuple[int, list[int], np.ndarray]:
    """Return the size of a queue, and the differences before judging and after each relevant document.

    The second value is the number of documents judged at each of these times.
    """
    drawn, known, values, queue = [], [], np.zeros(number), []
    for place, at in enumerate(rng.integers(len(queries), size=number).tolist()):
        tops, grades = queries[at]
        tops = tops[::-1] if rng.random() < 0.5 else tops
        retrieved = sorted({*tops[0], *tops[1]})
        hidden = [document for document in retrieved if rng.random() < HIDDEN]
        drawn.append((tops, grades))
        known.append({document: grade for document, grade in grades.items() if document not in hidden})
        queue += [(place, document) for document in hidden]
        values[place] = ndcg(tops[1], known[-1]) - ndcg(tops[0], known[-1])
    states, times = [values.copy()], [0]
    for time, at in enumerate(rng.permutation(len(queue)).tolist(), start=1):
        place, document = queue[at]
        tops, grades = drawn[place]
        if grades.get(document, 0) > 0:
            known[place][document] = grades[document]
            values[place] = ndcg(tops[1], known[place]) - ndcg(tops[0], known[place])
            states.append(values.copy())
            times.append(time)
    return len(queue), times, np.array(states)


def simulate(queries: list, number: int, draws: int) -> tuple[float, ...]:
    """Return the mean size of the queue, the rates of three rules, and the median share judged at the stop."""
    rng = np.random.default_rng([SEED, number])
    sizes, sure, shares = [], [], []
    for _ in range(draws):
        size, times, states = judging(queries, number, rng)
        flips = rng.choice([-1.0, 1.0], (number, FLIPS))
        seen = np.abs(states.sum(axis=1))[:, None] - 1e-12
        p = (1 + (np.abs(states @ flips) >= seen).sum(axis=1)) / (1 + FLIPS)
        near = np.flatnonzero(p < NEAR).tolist()
        first = next((at for at in near if is_sure(states[at])), None)
        ends = len(states) - 1
        sure.append((first == 0, ends in near and is_sure(states[-1]), first is not None))
        sizes.append(size)
        shares += [] if first is None else [times[first] / size]
    return float(np.mean(sizes)), *np.mean(sure, axis=0).tolist(), float(np.median(shares or [math.nan]))


def tables(data: Path, draws: int = DRAWS) -> Iterator[tuple[str, Table]]:
    """Yield the table of the page."""
    rows = []
    for name in PAIRS:
        queries = pair(data, name)
        for number in QUERIES:
            size, *rates, share = simulate(queries, number, draws)
            rows.append((name, number, f"{size:.0f}", *(f"{rate:.1%}" for rate in rates), f"{share:.0%}"))
    columns = (
        "runs",
        "queries",
        "documents to judge",
        "before judging",
        "after the whole queue",
        "until a verdict",
        "queue judged at that verdict",
    )
    yield "optional-stopping", Table(columns, tuple(rows))


if __name__ == "__main__":
    write_tables(tables, PAGE)
