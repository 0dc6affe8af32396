"""How often `diagnose` names a seeded fault first: a simulation, in Markdown.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/diagnosis_accuracy.py

The folder contains ``<collection>/trec/qrels.txt``, ``<collection>/runs/*.run.gz``, and the texts.
Each fault is seeded into real runs at one or two strengths; then queries are drawn with replacement,
from fixed seeds, and the first cause of each draw is counted. For runs without a fault, the gain of
fixing the first cause is measured on the queries that were not drawn. `--write` writes the tables to the page.
"""

import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import numpy as np

import rankgauge
from rankgauge.diagnosis import causes
from rankgauge.diagnosis.causes import Examiner
from rankgauge.diagnosis.gains import Effect, Simulation
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
from rankgauge.stats.intervals import mean_interval

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
# Without texts. No rule was developed on them.
HELD_OUT = tuple(("dl20-doc", f"BIT.UA-run{name}") for name in ("1", "2", "3", "3-4"))
K, DEPTH = 5, 100
MEASURE = rankgauge.parse("nDCG@10")
LAST_READ = 10
# Draws from each run; fewer if the input checks are repeated for each draw.
DRAWS, INPUT_DRAWS = 20, 10
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
    judged = folder / "trec" / "qrels.txt"
    qrels = rankgauge.Qrels.of(judged if judged.exists() else folder / "qrels.txt")
    found = rankgauge.data.ranked(rankgauge.Run.of(folder / "runs" / f"{run}.run.gz"))
    return Case(
        {query: dict(qrels[query]) for query in qrels.query_ids},
        {query: list(docs) for query, docs in found.items() if query in qrels.query_ids},
        texts(data, collection),
    )


@cache
def texts(data: Path, collection: str) -> Texts:
    """Return the texts of a collection, with their cached terms."""
    folder = data / collection
    return Texts(rankgauge.Collection.read(folder) if (folder / "queries.jsonl").exists() else rankgauge.Collection())


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


def swapped(of: Case, share: float, rng: np.random.Generator) -> Case:
    """Exchange the rankings of some queries in a circle."""
    chosen = [query for query in of.rankings if rng.random() < share]
    order = rng.permutation(chosen).tolist()
    other = dict(zip(order, order[1:] + order[:1], strict=True))
    return of.with_rankings(lambda query, _: of.rankings[other.get(query, query)])


def reversed_top(of: Case, top: float, _rng: np.random.Generator) -> Case:
    """Reverse the first documents."""
    return of.with_rankings(lambda _, docs: [*docs[: int(top)][::-1], *docs[int(top) :]])


def unindexed(of: Case, share: float, rng: np.random.Generator) -> Case:
    """Remove some documents from all rankings."""
    gone = {doc for doc in sorted(of.texts.collection.documents) if rng.random() < share}
    return of.with_rankings(lambda _, docs: [doc for doc in docs if doc not in gone])


def pooled(of: Case, depth: float, _rng: np.random.Generator) -> Case:
    """Judge only the first documents of another system: BM25 without stemming."""
    other = searched(of, stem="", query_stem="").rankings
    grades = {
        query: {doc: judged.get(doc, 0) for doc in sorted(other.get(query, ())[: int(depth)])}
        for query, judged in of.grades.items()
    }
    kept = {query: judged for query, judged in grades.items() if any(grade > 0 for grade in judged.values())}
    return replace(of, grades=kept, rankings={query: docs for query, docs in of.rankings.items() if query in kept})


def foreign(of: Case, share: float, rng: np.random.Generator) -> Case:
    """Search by BM25 with queries, some of whose words are in no document."""
    return searched(of, lambda word: f"x{word[::-1]}q" if rng.random() < share else word)


def stemmed(of: Case, language: float, _rng: np.random.Generator) -> Case:
    """Search by BM25 with another stemmer for queries than for documents."""
    return searched(of, query_stem=_LANGUAGES[int(language)])


_LANGUAGES = ("", "german", "french")


def searched(
    of: Case, change: Callable[[str], str] = str, *, stem: str = "english", query_stem: str = "english"
) -> Case:
    """Return the case with rankings by BM25 (k1 = 0.9, b = 0.4) as deep as those of the run."""
    known = of.texts.collection
    asked = {
        query: [change(word) for word in of.texts.query_words(query)] for query in of.grades if query in known.queries
    }
    depth = max(map(len, of.rankings.values()))
    scores = bm25(of.texts, stem)
    stems = stemmer(query_stem)
    rankings = {query: scores(map(stems, words))[:depth] for query, words in asked.items()}
    queries = {query: " ".join(words) for query, words in asked.items()}
    changed = rankgauge.Collection.of({doc: found.full_text for doc, found in known.documents.items()}, queries)
    return replace(of, rankings=rankings, texts=Texts(changed))


def stemmer(language: str) -> Callable[[str], str]:
    """Return a function from words to stems; "" keeps words."""
    return import_module("Stemmer").Stemmer(language).stemWord if language else str


@cache
def bm25(texts_of: Texts, stem: str) -> Callable[[Iterator[str]], list[str]]:
    """Return a function from the terms of a query to documents, best first."""
    ids, stems = sorted(texts_of.collection.documents), stemmer(stem)
    counts = [Counter(stems(word) for word in texts_of.words(doc)) for doc in ids]
    lengths = np.array([count.total() for count in counts]) / np.mean([count.total() for count in counts])
    rows: dict[str, dict[int, int]] = {}
    for row, count in enumerate(counts):
        for term, number in count.items():
            rows.setdefault(term, {})[row] = number

    def ranked(terms: Iterator[str]) -> list[str]:
        scores = np.zeros(len(ids))
        for term in dict.fromkeys(terms):
            at, number = np.array(list(rows.get(term, {})), dtype=int), np.array(list(rows.get(term, {}).values()))
            if len(at):
                idf = np.log1p((len(ids) - len(at) + 0.5) / (len(at) + 0.5))
                scores[at] += idf * number / (number + 0.9 * (0.6 + 0.4 * lengths[at]))
        return [ids[row] for row in np.argsort(-scores, kind="stable") if scores[row] > 0]

    return ranked


@dataclass(frozen=True)
class Fault:
    """A fault, its strengths, and the expected cause.

    Attributes:
        name: The name.
        apply: Seeds the fault.
        strengths: Its strengths.
        cause: The expected cause.
        searched: Whether it is seeded into searches by BM25 instead of existing runs.
    """

    name: str
    apply: Callable[[Case, float, np.random.Generator], Case]
    strengths: tuple[float, ...]
    cause: str
    searched: bool = False


FAULTS = (
    Fault("query ids swapped", swapped, (0.3,), "query ids swapped"),
    Fault("judged in another pool, depth", pooled, (10, 20), "unjudged at the top"),
    Fault("foreign words in queries", foreign, (0.7, 0.5), "vocabulary gap", searched=True),
    Fault("wrong stemmer for queries", stemmed, (0, 1), "ignored query terms", searched=True),
    Fault("documents not indexed", unindexed, (0.2, 0.1), "in no ranking"),
    Fault("first documents reversed", reversed_top, (10,), "top reversed"),
    Fault("rankings cut at rank", cut, (4, 7), "rankings cut"),
    Fault("first documents shuffled", shuffled, (20, 100), "no order at the top"),
    Fault("lexical matches dropped", partial(dropped, "many"), (0.75,), "ignored query terms"),
    Fault("semantic matches dropped", partial(dropped, "few"), (1,), "vocabulary gap"),
    Fault("queries with copies", duplicated, (0.5, 0.25), "duplicates crowd the top"),
    Fault("documents judged as chunks", stripped, (0.5,), INPUT + "ids"),
    Fault("ids with a prefix", wrong_ids, (0.5,), INPUT + "ids"),
    Fault("distances as scores, depth", distances, (50,), INPUT + "distances"),
    Fault("topic filtered out", filtered, (0.15,), "in no ranking"),
    Fault("long documents ranked last", lengthened, (0.1,), "very long or short"),
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


class Causes:
    """The causes of every query of a case and their effects, computed once for each set of patterns."""

    def __init__(self, of: Case) -> None:
        self.queries, self.texts = of.queries(), of.texts
        self.counts = np.array([pattern_counts(one, of.texts, K) for one in self.queries])
        self.patterns = find_patterns(self.queries, of.texts, K, DEPTH, last_read=LAST_READ)
        qrels = rankgauge.Qrels.of(of.grades)
        evaluation = rankgauge.evaluate(qrels, of.run(), MEASURE)
        self.values = dict(zip(evaluation.query_ids, evaluation.per_query[:, 0].tolist(), strict=True))
        self.simulation = Simulation(qrels, self.queries, evaluation, K, DEPTH, 1, of.texts)
        self.diagnosed = cache(self._diagnosed)

    def _diagnosed(self, patterns: Patterns) -> tuple[Examiner, list, dict[str, Effect]]:
        examiner = Examiner(self.texts, K, self.queries, patterns)
        every = [examiner.diagnose(one, 0.0, 1.0) for one in self.queries]
        return examiner, every, {effect.cause.name: effect for effect in self.simulation.effects(every, examiner)}

    def first(self, rows: Sequence[int]) -> tuple[str, float, float]:
        """Return the first cause of these queries, its gain in them, and its gain in all others."""
        patterns = with_counts(self.patterns, self.counts[rows].sum(axis=0))
        # Counts by length are only evidence.
        patterns = self.simulation.confirmed(replace(patterns, sizes=()), 0, rows)
        examiner, every, effects = self.diagnosed(patterns)
        drawn = [every[row] for row in rows if every[row].causes]
        gains = {name: effect.gain(0, rows) for name, effect in effects.items()}
        found = causes.first_causes(causes.totals(drawn, examiner, gains))
        if not found:
            return "none", 0.0, 0.0
        name = found[0].cause.name
        others = sorted({*range(len(every))}.difference(rows))
        return name, gains[name].mean, effects[name].gain(0, others).mean


def samples(size: int, draws: int, seed: int) -> list[list[int]]:
    """Return draws of queries with replacement."""
    rng = np.random.default_rng(seed)
    return [rng.integers(size, size=size).tolist() for _ in range(draws)]


@dataclass(frozen=True)
class Seeded:
    """The draws from a run with a fault.

    Attributes:
        causes: The first causes of the draws in which the fault certainly loses.
        loss: The mean loss.
        gain: The mean gain of fixing the expected cause, where it is first.
        draws: The number of all draws.
    """

    causes: Counter[str]
    loss: float
    gain: float
    draws: int


def seeded(fault: Fault, strength: float, data: Path, run: tuple[str, str], *, draws: int, seed: int = 0) -> Seeded:
    """Return the first causes of draws from a run with a fault."""
    rng = np.random.default_rng([seed, round(100 * strength)])
    sound = case(data, *run)
    sound = searched(sound) if fault.searched else sound
    faulty = fault.apply(sound, strength, rng)
    if fault.cause.startswith(INPUT):
        drawn = samples(len(faulty.grades), draws, seed)
        return Seeded(Counter(input_cause(faulty, rows) for rows in drawn), math.nan, math.nan, draws)
    before, after = Causes(sound).values, Causes(faulty)
    values = after.values
    if fault.apply is pooled:
        # Fewer judgments change the ideal ranking too: hide the unjudged documents instead.
        values = Causes(
            replace(
                sound.with_rankings(lambda q, docs: [d if d in faulty.grades.get(q, ()) else f"?{d}" for d in docs]),
                grades={query: sound.grades[query] for query in faulty.grades},
            )
        ).values
    lost = np.array([before[query] - value for query, value in values.items()])
    counted: Counter[str] = Counter()
    gains = []
    withheld = input_cause(faulty, range(len(faulty.grades)))
    for rows in samples(len(lost), draws, seed):
        if mean_interval(lost[rows])[0] > 0:
            name, gain, _ = (withheld, 0.0, 0.0) if withheld else after.first(rows)
            counted[name] += 1
            gains += [gain] if name == fault.cause else []
    return Seeded(counted, float(lost.mean()), float(np.mean(gains)) if gains else math.nan, draws)


def unmodified(data: Path, run: tuple[str, str], *, draws: int, seed: int = 0) -> tuple[Counter[str], int, float]:
    """Return the first causes of draws from a run, how many gain nothing in other queries, and their mean gain."""
    of = case(data, *run)
    found = Causes(of)
    counted: Counter[str] = Counter()
    others = []
    for rows in samples(len(of.grades), draws, seed):
        name, _, gain = found.first(rows)
        counted[name] += 1
        others += [gain] if name != "none" else []
    return counted, sum(gain <= 0 for gain in others), float(np.mean(others)) if others else math.nan


def matrix(data: Path, draws: int, faults: Sequence[Fault]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each fault and strength: shares of the expected cause, and other causes."""
    for fault in faults:
        runs = [run for run in RUNS if run[1].startswith("bm25")] if fault.searched else RUNS
        own = min(draws, INPUT_DRAWS) if fault.cause.startswith(INPUT) else draws
        for strength in fault.strengths:
            by_run = [seeded(fault, strength, data, run, draws=own, seed=n) for n, run in enumerate(runs)]
            every = sum((one.causes for one in by_run), Counter())
            shares = [one.causes[fault.cause] / one.causes.total() for one in by_run if one.causes]
            yield (
                fault.name,
                _LANGUAGES[int(strength)] or "none" if fault.apply is stemmed else f"{strength:g}",
                fault.cause,
                percent(every[fault.cause], every.total()),
                percent(min(shares), 1) if shares else "–",
                percent(every.total(), own * len(runs)),
                number(np.nanmean([one.loss for one in by_run])) if not fault.cause.startswith(INPUT) else "–",
                number(mean_of(one.gain for one in by_run)),
                format_counts(every - Counter({fault.cause: every.total()})),
            )


def mean_of(values: Iterator[float]) -> float:
    """Return the mean of the values that are known; NaN if there are none."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def number(value: float) -> str:
    """Format a difference."""
    return "–" if math.isnan(value) else f"{value:.3f}"


def format_counts(found: Counter[str]) -> str:
    """Format causes with their counts, most frequent first."""
    return ", ".join(f"{name} {number}" for name, number in found.most_common())


def percent(number_of: float, whole: int) -> str:
    """Format a share."""
    return f"{100 * number_of / whole:.1f}%" if whole else "–"


def tables(data: Path, draws: int) -> dict[str, Table]:
    """Return the tables of the page by name."""
    faults = ("fault", "strength", "expected cause", "first", "lowest run", "certain loss", "Δ lost", "Δ stated")
    with ProcessPoolExecutor(2) as pool:
        parts = [pool.submit(rows_of, data, draws, fault.name) for fault in FAULTS]
        runs = [(*UNMODIFIED, *HELD_OUT)[n] for n in range(len(UNMODIFIED) + len(HELD_OUT))]
        found = [pool.submit(unmodified, data, run, draws=draws, seed=n) for n, run in enumerate(runs)]
        seeded_rows = tuple(row for part in parts for row in part.result())
        rows = []
        for run, one in zip(runs, found, strict=True):
            counted, nothing, gain = one.result()
            named = draws - counted["none"]
            rows.append(
                (
                    ": ".join(run),
                    percent(named, draws),
                    percent(nothing, draws),
                    number(gain),
                    format_counts(counted),
                )
            )
    columns = ("run", "first cause named", "gains nothing", "Δ in other queries", "first causes")
    return {
        "faults": Table(columns=(*faults, "other first causes"), rows=seeded_rows),
        "unmodified": Table(columns=columns, rows=tuple(rows)),
    }


def rows_of(data: Path, draws: int, name: str) -> list[tuple[str, ...]]:
    """Return the rows of a fault."""
    rows = [*matrix(data, draws, [fault for fault in FAULTS if fault.name == name])]
    for row in rows:
        sys.stderr.write(f"{row}\n")
    return rows


def main() -> None:
    """Print the tables, or write them to the page."""
    named = os.environ.get("RANKGAUGE_TEST_DATA", "")
    if not named:
        sys.exit("set RANKGAUGE_TEST_DATA to the folder of the collections")
    page = Path(__file__).parents[1] / "explain" / "diagnosis-accuracy.md"
    text = page.read_text(encoding="utf-8")
    for name, table in tables(Path(named), DRAWS).items():
        start, end = f"<!-- table: {name} -->\n\n", "\n<!-- end -->"
        head, rest = text.split(start)
        text = head + start + to_markdown(table) + end + rest.split(end, 1)[1]
    sys.stdout.write(text)
    if "--write" in sys.argv:
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
