"""How often `diagnose` names a seeded fault first: a simulation, in Markdown.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/diagnosis_accuracy.py

The folder contains ``<collection>/trec/qrels.txt``, ``<collection>/runs/*.run.gz``, and the texts.
Each fault is seeded into real runs at three strengths; then queries are drawn with replacement,
from fixed seeds, and the first cause of each draw is counted.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

import rankgauge
from rankgauge.diagnosis import causes
from rankgauge.diagnosis.causes import Examiner, totals
from rankgauge.diagnosis.ranked_queries import (
    Patterns,
    RankedQuery,
    find_patterns,
    overlap,
    pattern_counts,
    ranked_queries,
    rankings_of,
    with_counts,
)
from rankgauge.diagnosis.terms import Texts
from rankgauge.evaluation.input_checks import collection_findings
from rankgauge.rendering.tables import Table, to_markdown

RUNS = (
    ("cranfield", "bm25-lucene-k0.9-b0.4-stem"),
    ("cranfield", "minilm-l6-v2-cosine"),
    ("cisi", "bm25-lucene-k0.9-b0.4-stem"),
    ("cisi", "minilm-l6-v2-cosine"),
    ("npl", "bm25-lucene-k0.9-b0.4-stem"),
)
UNMODIFIED = (
    *RUNS,
    ("cranfield", "bm25-robertson-k1.5-b0.75-nostem"),
    ("cranfield", "rrf-bm25-minilm-k60"),
    ("cisi", "bm25-robertson-k1.5-b0.75-nostem"),
    ("cisi", "rrf-bm25-minilm-k60"),
    ("npl", "bm25-robertson-k1.5-b0.75-nostem"),
)
K, DEPTH = 5, 100
# For nDCG@10.
LAST_READ = 10
# Draws from each run; fewer if the input checks are repeated for each draw.
DRAWS, INPUT_DRAWS = 100, 40
# Causes that unmodified runs can have.
NATURAL = {"ranked below k", "not retrieved", "low in the top k", "vocabulary gap", "none"}
INPUT = "input: "


@dataclass(frozen=True)
class Case:
    """Judgments, a run, and texts, perhaps with a fault.

    Attributes:
        grades: The grades of the judged documents, by query.
        rankings: The documents retrieved, by query, best first.
        texts: The texts.
        rising: Whether scores are distances.
    """

    grades: Mapping[str, Mapping[str, float]]
    rankings: Mapping[str, Sequence[str]]
    texts: Texts
    rising: bool = False

    def run(self) -> dict[str, dict[str, float]]:
        """Return the rankings with scores."""
        sign = 1.0 if self.rising else -1.0
        return {query: {doc: sign * rank for rank, doc in enumerate(docs)} for query, docs in self.rankings.items()}

    def queries(self) -> tuple[RankedQuery, ...]:
        """Return the rankings with the judgments."""
        qrels = rankgauge.Qrels.of(self.grades)
        return ranked_queries(qrels, *rankings_of([rankgauge.Run.of(self.run())], qrels), 1)

    def with_rankings(self, change: Callable[[str, Sequence[str]], Sequence[str]]) -> "Case":
        """Return the case with changed rankings."""
        return replace(self, rankings={q: change(q, docs) for q, docs in self.rankings.items()})


@cache
def case(data: Path, collection: str, run: str) -> Case:
    """Return a real run."""
    folder = data / collection
    qrels = rankgauge.Qrels.of(folder / "trec" / "qrels.txt")
    found = rankgauge.data.ranked(rankgauge.Run.of(folder / "runs" / f"{run}.run.gz"))
    return Case(
        {query: dict(qrels[query]) for query in qrels.query_ids},
        {query: list(docs) for query, docs in found.items() if query in qrels.query_ids},
        texts(data, collection),
    )


@cache
def texts(data: Path, collection: str) -> Texts:
    """Return the texts of a collection, with their cached terms."""
    return Texts(rankgauge.Collection.read(data / collection))


def other_texts(of: Case, documents: Mapping[str, str]) -> Texts:
    """Return the texts with replaced or additional documents."""
    known = of.texts.collection
    whole = {doc: found.full_text for doc, found in known.documents.items()}
    asked = {query: found.text for query, found in known.queries.items()}
    return Texts(rankgauge.Collection.of(whole | dict(documents), asked))


# ---- faults


def cut(of: Case, depth: float, _rng: np.random.Generator) -> Case:
    """Cut the rankings."""
    return of.with_rankings(lambda _, docs: docs[: int(depth)])


def shuffled(of: Case, top: float, rng: np.random.Generator) -> Case:
    """Shuffle the first documents."""
    return of.with_rankings(lambda _, docs: [*rng.permutation(docs[: int(top)]).tolist(), *docs[int(top) :]])


def dropped(kind: str, of: Case, share: float, rng: np.random.Generator) -> Case:
    """Remove documents that share many (or few) terms with the query."""
    ranked = {one.query_id: one for one in of.queries()}

    def change(query: str, docs: Sequence[str]) -> list[str]:
        gone = rng.random(len(docs)) < share
        return [
            doc for doc, own in zip(docs, gone, strict=True) if not own or overlap(ranked[query], doc, of.texts) != kind
        ]

    return of.with_rankings(change)


def duplicated(of: Case, share: float, rng: np.random.Generator) -> Case:
    """Insert a copy with another id after each of the first documents of some queries."""
    chosen = {query for query in of.rankings if rng.random() < share}
    docs = {doc for query in chosen for doc in of.rankings[query][:K]}
    known = of.texts.collection.documents
    copies = {f"{doc}-copy": known[doc].full_text for doc in docs}

    def change(query: str, docs: Sequence[str]) -> Sequence[str]:
        if query not in chosen:
            return docs
        return [*(one for doc in docs[:K] for one in (doc, f"{doc}-copy")), *docs[K:]]

    return replace(of.with_rankings(change), texts=other_texts(of, copies))


def stripped(of: Case, share: float, rng: np.random.Generator) -> Case:
    """Turn documents into chunks in judgments and texts; the run still names the documents."""
    known = of.texts.collection.documents
    chunk = {doc: f"{doc}#{n % 7}" if rng.random() < share else doc for n, doc in enumerate(known)}
    whole = {chunk[doc]: found.full_text for doc, found in known.items()}
    asked = {query: found.text for query, found in of.texts.collection.queries.items()}
    return replace(
        of,
        grades={
            query: {chunk.get(doc, doc): grade for doc, grade in grades.items()} for query, grades in of.grades.items()
        },
        texts=Texts(rankgauge.Collection.of(whole, asked)),
    )


def wrong_ids(of: Case, share: float, rng: np.random.Generator) -> Case:
    """Add a prefix to document ids of the run."""
    known = of.texts.collection.documents
    name = {doc: f"doc_{doc}" if rng.random() < share else doc for doc in known}
    return of.with_rankings(lambda _, docs: [name.get(doc, doc) for doc in docs])


def distances(of: Case, depth: float, _rng: np.random.Generator) -> Case:
    """Use distances as scores."""
    return replace(cut(of, depth, _rng), rising=True)


def filtered(of: Case, share: float, _rng: np.random.Generator) -> Case:
    """Remove a topic: the documents with the term whose share of relevant documents is nearest."""
    relevant = [doc for one in of.queries() for doc in one.relevant]
    counts = Counter(term for doc in relevant for term in of.texts.terms(doc))
    wanted = share * len(relevant)
    topic = min(sorted(counts), key=lambda term: abs(counts[term] - wanted))
    return of.with_rankings(lambda _, docs: [doc for doc in docs if topic not in of.texts.terms(doc)])


def lengthened(of: Case, share: float, rng: np.random.Generator) -> Case:
    """Make some documents eight times as long, and rank them last."""
    known = of.texts.collection.documents
    ids = sorted(known)
    chosen = [doc for doc in ids if rng.random() < share]
    filler = {doc: [doc, *rng.choice(ids, 7).tolist()] for doc in chosen}
    long = {doc: " ".join(known[one].full_text for one in parts) for doc, parts in filler.items()}
    return replace(
        of.with_rankings(lambda _, docs: sorted(docs, key=lambda doc: doc in long)), texts=other_texts(of, long)
    )


@dataclass(frozen=True)
class Fault:
    """A fault, its strengths, and the expected cause."""

    name: str
    apply: Callable[[Case, float, np.random.Generator], Case]
    strengths: tuple[float, ...]
    cause: str


FAULTS = (
    Fault("rankings cut at rank", cut, (4, 7, 10), "rankings cut"),
    Fault("first documents shuffled", shuffled, (20, 50, 100), "no order at the top"),
    Fault("lexical matches dropped", partial(dropped, "many"), (1, 0.9, 0.75), "terms ignored"),
    Fault("semantic matches dropped", partial(dropped, "few"), (1, 0.9, 0.8), "vocabulary gap"),
    Fault("queries with copies", duplicated, (1, 0.5, 0.25), "duplicates crowd the top"),
    Fault("documents judged as chunks", stripped, (1, 0.75, 0.5), INPUT + "ids"),
    Fault("ids with a prefix", wrong_ids, (1, 0.75, 0.5), INPUT + "ids"),
    Fault("distances as scores, depth", distances, (200, 50, 20), INPUT + "distances"),
    Fault("topic filtered out", filtered, (0.4, 0.25, 0.15), "in no ranking"),
    Fault("long documents ranked last", lengthened, (0.3, 0.2, 0.1), "very long or short"),
)
_INPUT_NAMES = {"P103": "ids", "P109": "ids", "P102": "ids", "T104": "ids", "R104": "distances"}


# ---- first causes


def input_cause(of: Case, rows: Sequence[int]) -> str:
    """Return the first error of the input checks for these queries; "" if there is none."""
    names = list(of.grades)
    drawn = [(f"{names[row]}.{place}", names[row]) for place, row in enumerate(rows)]
    run = of.run()
    grades = {new: of.grades[old] for new, old in drawn}
    ranking = {new: dict(list(run[old].items())[:DEPTH]) for new, old in drawn if old in run}
    found = rankgauge.evaluate(grades, ranking, "nDCG@10").input_findings
    docs = [doc for one in ranking.values() for doc in list(one)[:10]]
    found += collection_findings(docs, of.texts.collection.documents)
    codes = [one.code for one in found if one.severity == "error"]
    return INPUT + _INPUT_NAMES.get(codes[0], codes[0]) if codes else ""


def first_causes(of: Case, draws: int, seed: int, *, checks: bool) -> Counter[str]:
    """Count the first causes over draws of queries; `checks` repeats the input checks."""
    rng = np.random.default_rng(seed)
    size = len(of.grades)
    samples = [rng.integers(size, size=size).tolist() for _ in range(draws)]
    whole = input_cause(of, range(size))
    by_input = [input_cause(of, rows) for rows in samples] if checks else [whole] * draws
    causes = Causes(of) if not all(by_input) else None
    return Counter(
        early or (causes.first(rows) if causes else "") for early, rows in zip(by_input, samples, strict=True)
    )


class Causes:
    """The causes of every query of a case, computed once for each set of patterns."""

    def __init__(self, of: Case) -> None:
        self.queries, self.texts = of.queries(), of.texts
        self.counts = np.array([pattern_counts(one, of.texts, K) for one in self.queries])
        self.patterns = find_patterns(self.queries, of.texts, K, DEPTH, last_read=LAST_READ)
        self.diagnosed = cache(self._diagnosed)

    def _diagnosed(self, patterns: Patterns) -> tuple[Examiner, list]:
        examiner = Examiner(self.texts, K, self.queries, patterns)
        return examiner, [examiner.diagnose(one, 0.0, 1.0) for one in self.queries]

    def first(self, rows: Sequence[int]) -> str:
        """Return the first cause of these queries."""
        patterns = with_counts(self.patterns, self.counts[rows].sum(axis=0))
        # Counts by length are only evidence.
        examiner, every = self.diagnosed(replace(patterns, sizes=()))
        drawn = [every[row] for row in rows if every[row].causes]
        found = causes.first_causes(totals(drawn, examiner), drawn)
        return found[0].cause.name if found else "none"


def seeded_causes(
    fault: Fault, strength: float, data: Path, *, draws: int, runs: Sequence[tuple[str, str]] = RUNS
) -> Iterator[Counter[str]]:
    """Yield the first causes of the draws from each run with this fault."""
    for number, run in enumerate(runs):
        rng = np.random.default_rng([number, round(100 * strength)])
        made = fault.apply(case(data, *run), strength, rng)
        yield first_causes(made, draws, number, checks=fault.cause.startswith(INPUT))


def unmodified(
    data: Path, draws: int, runs: Sequence[tuple[str, str]] = UNMODIFIED
) -> Iterator[tuple[str, Counter[str]]]:
    """Yield the first causes of the draws from each unmodified run."""
    for number, (collection, run) in enumerate(runs):
        of = case(data, collection, run)
        yield f"{collection}: {run}", first_causes(of, draws, number, checks=True)


def matrix(data: Path, draws: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each fault and strength: shares of the expected cause, and other causes."""
    for fault in FAULTS:
        for strength in fault.strengths:
            own = min(draws, INPUT_DRAWS) if fault.cause.startswith(INPUT) else draws
            by_run = list(seeded_causes(fault, strength, data, draws=own))
            every = sum(by_run, Counter())
            lowest = min(found[fault.cause] for found in by_run)
            others = every - Counter({fault.cause: every.total()})
            yield (
                fault.name,
                f"{strength:g}",
                fault.cause,
                percent(every[fault.cause], every.total()),
                percent(lowest, own),
                format_counts(others),
            )


def format_counts(found: Counter[str]) -> str:
    """Format causes with their counts, most frequent first."""
    return ", ".join(f"{name} {number}" for name, number in found.most_common())


def percent(number: int, whole: int) -> str:
    """Format a share."""
    return f"{100 * number / whole:.1f}%"


def main() -> None:
    """Print the tables."""
    named = os.environ.get("RANKGAUGE_TEST_DATA", "")
    if not named:
        sys.exit("set RANKGAUGE_TEST_DATA to the folder of the collections")
    data, write = Path(named), sys.stdout.write
    draws = int(sys.argv[1]) if sys.argv[1:] else DRAWS
    write(f"## Seeded faults\n\n{len(RUNS)} runs, {draws} draws of each")
    write(f", {min(draws, INPUT_DRAWS)} where the input is at fault\n\n")
    columns = ("fault", "strength", "expected cause", "first", "lowest run", "other first causes")
    rows = tuple(matrix(data, draws))
    write(to_markdown(Table(columns=columns, rows=rows)))
    write(f"\n## Unmodified runs\n\n{draws} draws of each\n\n")
    found = [
        (run, percent(draws - sum(causes[name] for name in NATURAL), draws), format_counts(causes))
        for run, causes in unmodified(data, draws)
    ]
    columns = ("run", "with a spurious cause", "first causes")
    write(to_markdown(Table(columns=columns, rows=tuple(found))))


if __name__ == "__main__":
    main()
