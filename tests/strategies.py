"""Adversarial judgments and runs: ties, gaps, negative grades, missing queries, odd ids.

There are two sources: :func:`batch` draws hundreds of queries from a seed, so that one call of an
oracle checks them all; the hypothesis strategies generate small ones that shrink.

Scores are exact in 32 bits, the precision of trec_eval 9 and pytrec_eval.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from oracles import Seen, Value, ranked, value
from reader_loops import LOOPS

from rankgauge.data.join import Joined, join
from rankgauge.data.judged_run import JudgedRun
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.measures.measure import Measure

_LONG = "http://example.org/" + "a-very-long-path/" * 8

# Ids that are prefixes of each other, need two to four bytes per character, share 150 bytes, differ
# after the eighth byte or only in length, or contain the highest and lowest valid bytes.
_ODD_IDS = (
    *("d", "d1", "d10", "d100", "d1000", "d10000000", "d100000000", "D1", "1", "10", "2"),
    *("é", "e\u0301", "z", "ż", "文書", "文書1", "文", "😀", "😀1", "\uffff", "\ufffd", "\U0010ffff"),
    *("\u007f", "\u0080", "\x01", "\x01\x01", "!", "~", "~~~~~~~~", "~~~~~~~~~", "aaaaaaaa"),
    *("aaaaaaab", "aaaaaaaab", "aaaaaaaa\x01", "aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaa"),
    *(_LONG, _LONG + "1", _LONG + "10", _LONG + "é", _LONG[:-1], _LONG + "x" * 60),
)

Judgments = dict[str, dict[str, float]]
Scores = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Batch:
    """Judgments and a run as dictionaries."""

    qrels: Judgments
    run: Scores

    def seen(self, query: str) -> Seen:
        """Return one query in the form of the oracle loops."""
        return Seen(ranked(self.run.get(query, {})), self.qrels[query])


def batch(
    seed: int,
    *,
    queries: int = 1000,
    grades: tuple[float, ...] = (-1, 0, 0, 1, 1, 2, 3, 4),
    deepest: int = 40,
    missing: bool = True,
) -> Batch:
    """Return random queries. Each draws its own properties, so that all kinds of queries occur."""
    rng = random.Random(seed)
    qrels: Judgments = {}
    run: Scores = {}
    for number in range(queries):
        query = f"q{number}" if number % 7 else f"é{number}"
        known = [*_ODD_IDS, *(f"d{i}" for i in range(2, 40))]
        rng.shuffle(known)
        depth = 600 if number % 250 == 3 else rng.randint(1, deepest)
        retrieved = known[:depth] + [f"x{i}" for i in range(depth - len(known))]
        rng.shuffle(retrieved)
        pool = [*rng.sample(retrieved, rng.randint(0, min(len(retrieved), 30)))]
        pool += [f"never-{i}" for i in range(rng.choice((0, 0, 1, 3, 12)))]
        # At least one judgment, or the query would be unjudged.
        pool = pool or ["never"]
        usual = rng.sample(grades, rng.randint(1, len(grades)))
        qrels[query] = {doc: rng.choice(usual) for doc in pool}
        if missing and rng.random() < 0.05:
            continue
        run[query] = dict(zip(retrieved, _scores(rng, depth), strict=True))
        if missing and rng.random() < 0.03:
            run[f"unjudged-{number}"] = dict(run[query])
    return Batch(qrels, run)


def _scores(rng: random.Random, count: int) -> list[float]:
    """Return scores of one kind: equal, few levels, quarters around 0, distinct, huge, tiny."""
    habit = rng.randrange(6)
    if habit == 0:
        return [0.5] * count
    if habit == 1:
        return [float(rng.randrange(3)) for _ in range(count)]
    if habit == 2:
        # 0.0 and -0.0 are the same score.
        return [rng.choice((-0.0, 0.0, -0.25, 0.25, 1.0)) for _ in range(count)]
    if habit == 3:
        return [float(step) for step in rng.sample(range(-count, count), count)]
    if habit == 4:
        return [rng.choice((2.0**90, -(2.0**90), 2.0**-100, 1.0)) for _ in range(count)]
    return [float(np.float32(rng.gauss(0, 1))) for _ in range(count)]


# ---- hypothesis

ids = st.one_of(
    st.sampled_from(_ODD_IDS),
    st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12),
)
few_scores = st.sampled_from((-1.5, -0.0, 0.0, 0.25, 1.0, 2.0))
many_scores = st.floats(-1000, 1000, width=32, allow_subnormal=False)
_whole_grades = st.sampled_from((-1, 0, 1, 2, 3, 4))
_any_scores = st.one_of(few_scores, many_scores)


@st.composite
def batches(  # type: ignore[no-untyped-def] # hypothesis types the rest
    draw, grades=_whole_grades, scores=_any_scores, ids=ids
) -> Batch:
    """A few queries, each with at least one judgment, some not in the run."""
    qrels: Judgments = {}
    run: Scores = {}
    for number in range(draw(st.integers(1, 5))):
        docs = draw(st.lists(ids, min_size=1, max_size=12, unique=True))
        judged = draw(st.lists(st.sampled_from(docs), min_size=1, unique=True))
        retrieved = draw(st.lists(st.sampled_from(docs), unique=True))
        qrels[f"q{number}"] = {doc: draw(grades) for doc in judged}
        if retrieved or number == 0:
            run[f"q{number}"] = {doc: draw(scores) for doc in retrieved or docs}
    return Batch(qrels, run)


_RELS = st.one_of(st.integers(1, 4), st.sampled_from((0.5, 1.5, 2.25, "best")))
_WORDS = {
    "among": st.sampled_from(("judged", "retrieved")),
    "b": st.sampled_from((1.5, 2, 3, 10)),
    "beta": st.one_of(st.integers(1, 4), st.sampled_from((0.25, 0.5, 1.5))),
    "gain": st.one_of(
        st.sampled_from(("linear", "exp")),
        st.dictionaries(
            st.one_of(st.integers(0, 4), st.sampled_from((0.5, 1.5))),
            st.one_of(st.integers(0, 20), st.sampled_from((0.1, 0.5, 2.5))),
            min_size=1,
        ).map(lambda gains: tuple(sorted((float(g), float(v)) for g, v in gains.items()))),
    ),
    "goal": st.sampled_from((0.5, 1, 2, 3.25, 20)),
    "hit": st.sampled_from((-1, 0, 1, 2.5)),
    "ideal": st.sampled_from(("judged", "retrieved", "topk")),
    "judged_only": st.booleans(),
    "k": st.one_of(st.integers(1, 12), st.sampled_from((20, 100, 1000, 10**9))),
    "miss": st.sampled_from((-2, 0, 0.5)),
    "mult": st.sampled_from((0.01, 0.2, 0.5, 1, 1.4, 2, 1e5)),
    "noise": st.sampled_from((-1, 0, -0.25)),
    "norm": st.sampled_from(("R", "min(k,R)", "k", "retrieved")),
    "normalize": st.booleans(),
    "p": st.sampled_from((0.05, 0.5, 0.8, 0.95, 0.999)),
    "points": st.sampled_from(("up", "nearest")),
    "recall": st.one_of(st.sampled_from([tenth / 10 for tenth in range(11)]), st.floats(0, 1)),
    "rel": _RELS,
    "residual": st.booleans(),
    "top": st.integers(4, 12),
}


# These loops visit every rank, so they cannot go to rank 1,000,000,000.
_WALKED = {"Compat", *(loop.__name__ for loop in LOOPS)}
_STEPS = st.one_of(st.integers(1, 12), st.sampled_from((20, 100, 1000)))


def bound(bare: Measure) -> st.SearchStrategy[Measure]:
    """A measure of the catalog with random values of all parameters."""
    declared = bare.declaration
    always = {word: _WORDS[word] for word in declared.required}
    maybe = {word: _WORDS[word] for word in declared.defaults}

    if bare.name in _WALKED:
        always, maybe = ({**words, "k": _STEPS} if "k" in words else words for words in (always, maybe))

    def complete(params: dict[str, Any]) -> Measure:
        if params.get("norm") == "k" or params.get("ideal") == "topk":
            params = {"k": 5, **params}
        taken = bare.declaration.variant(params).words
        return bare(**{word: value for word, value in params.items() if word in taken}).complete()

    return st.fixed_dictionaries(always, optional=maybe).map(complete)


# ---- joined data


def joined(qrels: object, run: object, ties: str = "trec") -> Joined:
    """Return judgments and a run, joined."""
    found = Run.of(run)
    return join(Qrels.of(qrels), found.without_repeats("error"), ties=ties)


def values(found: Joined, measures: list[Measure] | tuple[Measure, ...], cells: int | None = None) -> np.ndarray:
    """Return (Q, M) values of all judged queries, NaN if undefined."""
    rows = np.arange(len(found.qrels))
    result = np.full((len(rows), len(measures)), -np.inf)
    for places, block in _blocks(found, rows, cells):
        for column, measure in enumerate(measures):
            result[places, column] = measure.values(block)
    return result


def _blocks(found: Joined, rows: np.ndarray, cells: int | None) -> Iterator[tuple[np.ndarray, JudgedRun]]:
    return found.blocks(rows) if cells is None else found.blocks(rows, cells=cells)


NEEDED = {"k": 5, "mult": 0.5, "recall": 0.5}


def completed(bare: Measure) -> Measure:
    """Return a measure with values for its required parameters."""
    return bare(**{word: NEEDED[word] for word in bare.declaration.required})


def by_loop(measure: Measure, seen: Seen) -> Value:
    """Return the independent value of a measure for one query."""
    return value(measure.name, measure.arguments, seen)


def differs(ours: float, theirs: float | None, tolerance: float = 1e-12) -> bool:
    """Return whether two values differ; NaN and None mean undefined."""
    if theirs is None:
        return not math.isnan(ours)
    # Sums of gains are large, so the tolerance is relative.
    return not abs(ours - theirs) <= tolerance * max(1.0, abs(theirs))


def graded_runs(queries: int = 60, systems: int = 3, seed: int = 1, digits: int = 1) -> tuple[dict, dict]:
    """Return runs with the same judgments; system s is better the higher s is."""
    rng = np.random.default_rng(seed)
    qrels, runs = {}, {f"s{s}": {} for s in range(systems)}
    for q in range(queries):
        grades = rng.integers(0, 3, 30)
        qrels[f"q{q:0{digits}}"] = {f"d{d}": int(grade) for d, grade in enumerate(grades)}
        hard = rng.normal(0, 1.5, 30)
        for s in range(systems):
            scores = grades * (0.4 + 0.25 * s) + hard + rng.normal(0, 0.6, 30)
            runs[f"s{s}"][f"q{q:0{digits}}"] = {f"d{d}": float(x) for d, x in enumerate(scores)}
    return qrels, runs
