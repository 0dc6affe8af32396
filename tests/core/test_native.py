"""The compiled core gives the same bits as the plain path."""

import itertools
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rankgauge as rg
from rankgauge import functional
from rankgauge.core import native
from rankgauge.core.exact_sum import total
from rankgauge.core.ids import Ids
from rankgauge.core.pair_table import PairTable, offsets_of
from rankgauge.data.alignment import align
from rankgauge.data.join import ranked
from rankgauge.formats import fast_trec
from rankgauge.formats.columns import RUN
from rankgauge.formats.pieces import PairFile
from rankgauge.formats.readers import read_table
from rankgauge.tutorials.evaluator import RetrievalEvaluator

pytestmark = pytest.mark.skipif(native.core is None, reason="the compiled core was not built")
MEASURES = ["nDCG@3", "AP", "RR", "P@2", "R@5", "ERR@4", "Bpref"]
IDS = st.text(st.sampled_from("ab1é\U0001f600"), min_size=1, max_size=140)


class Negated(float):
    """A score whose value is that of its own __float__."""

    def __float__(self):
        return -super().__float__()


SCORES = st.sampled_from([0.0, -0.0, 1.0, 0.5, -1e300, 5e-324, 3, 2**53, 1e15, Negated(0.75), np.float64(0.5)])
RUNS = st.dictionaries(IDS, st.dictionaries(IDS, SCORES, max_size=30), min_size=1, max_size=4)
JUDGMENTS = st.dictionaries(
    IDS, st.dictionaries(IDS, st.sampled_from([0, 1, 2, -1]), min_size=1, max_size=20), min_size=1
)
NO_RANKS = np.zeros(0)
TIES = st.sampled_from(["trec", "input", "best", "worst", "mean"])


def outcome(judgments, run, ties="trec", measures=MEASURES):
    """Return the values and notes of an evaluation, or the text of its error."""
    try:
        found = rg.evaluate(judgments, run, measures, ties=ties)
    except rg.RankgaugeError as error:
        return str(error)
    return found.per_query.tobytes(), found.findings, found.counts, found.coverage


def both(judgments, run, ties="trec", measures=MEASURES):
    """Return the outcomes with and without the compiled core."""
    compiled = outcome(judgments, run, ties, measures)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "core", None)
        return compiled, outcome(judgments, run, ties, measures)


@given(JUDGMENTS, RUNS, TIES)
def test_dicts_are_joined_alike(judgments, run, ties):
    for query in list(run)[:2]:  # mostly no common documents
        judgments.setdefault(query, dict.fromkeys(list(run[query])[::2] or ["a"], 1))
    compiled, plain = both(judgments, run, ties)
    assert compiled == plain


LEVELS = st.sampled_from([1, 2, 0.5])
CUTOFFS = st.sampled_from([1, 2, 3, 10, 10**9])
USUAL = st.one_of(
    st.builds(
        lambda name, k, rel: name(rel=rel) @ k, st.sampled_from([rg.P, rg.R, rg.Success, rg.RR, rg.AP]), CUTOFFS, LEVELS
    ),
    st.builds(lambda k, beta: rg.F(beta=beta) @ k, CUTOFFS, st.sampled_from([1, 0.5, 2, 0.3])),
    st.builds(lambda k: rg.nDCG @ k, CUTOFFS),
    st.builds(lambda rel: rg.RR(rel=rel), LEVELS),
    st.sampled_from(["AP", "RR", "nDCG", "SetP", "SetR", "SetF", "NumRet", "NumRel", "FirstRel", "SetF(beta=0.3)"]),
)
GRADES = st.sampled_from([0, 1, 2, 3, -1, 0.5, 1.5, 0.1, 1e300, 5e-324, -0.0, 7])


@given(st.data(), RUNS, st.sampled_from(["trec", "input"]))
def test_usual_measures_are_computed_alike(data, run, ties):
    docs = st.sampled_from(sorted({doc for ranking in run.values() for doc in ranking} | {"a"}))
    grades = st.dictionaries(st.one_of(docs, IDS), GRADES, min_size=1, max_size=12)
    queries = st.one_of(st.sampled_from(sorted(run)), IDS)
    judgments = data.draw(st.dictionaries(queries, grades, min_size=1, max_size=5))
    measures = data.draw(st.lists(USUAL, min_size=1, max_size=8))
    compiled, plain = both(judgments, run, ties, measures)
    assert compiled == plain


@given(st.data(), RUNS, st.sampled_from(["trec", "input"]))
def test_the_other_measures_beside_usual_ones_are_computed_alike(data, run, ties):
    docs = st.sampled_from(sorted({doc for ranking in run.values() for doc in ranking} | {"a"}))
    grades = st.dictionaries(st.one_of(docs, IDS), GRADES, min_size=1, max_size=12)
    queries = st.one_of(st.sampled_from(sorted(run)), IDS)
    judgments = data.draw(st.dictionaries(queries, grades, min_size=1, max_size=5))
    others = st.sampled_from(["ERR@4", "Bpref", "RBP(p=0.8)", "infAP", "Judged@3", "RR(rel=best)"])
    measures = data.draw(st.lists(st.one_of(USUAL, others), min_size=1, max_size=8))
    compiled, plain = both(judgments, run, ties, measures)
    assert compiled == plain


@pytest.mark.parametrize("size", [5, 900, 3_000])
def test_usual_measures_of_many_rankings_are_computed_alike(size):
    rng = random.Random(size)
    run = {
        f"q{q}": {f"d{rng.randrange(2 * size)}": float(rng.randrange(size)) for _ in range(size)}
        for q in rng.sample(range(70), 70)
    }
    judgments = {
        f"q{q}": {f"d{rng.randrange(2 * size)}": rng.randrange(-1, 4) for _ in range(q + 1)} for q in range(80)
    }
    for measures in (None, ["ERR@5", "AP", "Bpref"], ["nDCG@10", "nDCG", "AP", "RR", "P@5", "R@100", "R(rel=2)@3"]):
        compiled, plain = both(judgments, run, "trec", measures)
        assert compiled == plain


@given(
    st.lists(st.sampled_from("abcdefgh12"), max_size=8),
    st.dictionaries(st.sampled_from("abcdefxy"), GRADES, max_size=8),
    CUTOFFS,
)
def test_functions_and_evaluators_give_the_same_alike(retrieved, grades, k):
    relevant = [doc for doc in grades if grades[doc] > 0]

    def found():
        results = []
        for call in (
            lambda: functional.ndcg_at_k(retrieved, grades, k),
            lambda: functional.precision_at_k(tuple(retrieved), set(relevant), k),
            lambda: functional.average_precision(retrieved, grades, rel=2),
            lambda: functional.ndcg_at_k([*map(ord, retrieved)], [*map(ord, relevant)]),
            lambda: functional.dcg_at_k(retrieved, grades, k, gain={1: 5}),
            lambda: RetrievalEvaluator([1, 3]).evaluate_single("q", retrieved, relevant),
        ):
            try:
                results.append(call())
            except rg.RankgaugeError as error:
                results.append(str(error))
        return results

    compiled = found()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "core", None)
        assert found() == compiled


@pytest.mark.parametrize("ties", ["trec", "input", "best", "mean"])
def test_scores_are_those_of_float(ties):
    run = {"q": {"a": 2.0, "b": Negated(3.0), "c": 1.0, "d": np.float32(0.5), "e": -9.0}}
    floats = {"q": {doc: float(score) for doc, score in run["q"].items()}}
    for judged in "abcde":
        judgments = {"q": {judged: 1}}
        assert both(judgments, run, ties) == both(judgments, floats, ties)


def test_findings_are_those_of_the_run_when_it_was_evaluated():
    judgments = {f"q{q}": {f"d{d}": 1 for d in range(5)} for q in range(12)}
    run = {f"q{q}": {f"x{d}": 9.0 - d for d in range(5)} for q in range(12)}
    before, later = (rg.evaluate(judgments, run, ["AP", "P@5"]) for _ in range(2))
    assert any(found.severity == "error" for found in before.findings)
    run["q1"].clear()
    assert later == before
    assert later.coverage == before.coverage


@given(JUDGMENTS, RUNS, TIES)
def test_tables_are_joined_alike(judgments, run, ties):
    for query in list(run)[:2]:
        judgments.setdefault(query, dict.fromkeys(list(run[query])[::2] or ["a"], 1))
    rows = [(query, doc, score) for query, docs in run.items() for doc, score in docs.items()]
    compiled, plain = both(judgments, rows, ties)
    assert compiled == plain


@pytest.mark.parametrize("order", ["descending", "shuffled", "all equal", "few scores"])
@pytest.mark.parametrize("ties", ["trec", "input"])
def test_large_rankings_with_many_judged_documents_are_ranked_alike(order, ties):
    rng = random.Random(7)
    names = [f"d{rng.randrange(10**9)}" for _ in range(3_000)]
    scores = {
        "descending": [3_000.0 - i // 3 for i in range(3_000)],
        "shuffled": [rng.random() for _ in names],
        "all equal": [1.0] * 3_000,
        "few scores": [float(rng.randrange(40)) for _ in names],
    }[order]
    run = {"q": dict(zip(names, scores, strict=True))}
    judgments = {"q": {name: rng.randrange(3) for name in names[::4]} | {"absent": 1}}
    rows = [("q", *pair) for pair in run["q"].items()]
    for given_run in (run, rows):
        compiled, plain = both(judgments, given_run, ties)
        assert compiled == plain
        assert isinstance(compiled, tuple)


FIELDS = st.sampled_from(["q1", "q2", "d1", "d2", "d\xe9", "1", "0.25", "-3", "1e3", "nan", "#", "x" * 9])
BLANKS = st.sampled_from([" ", "\t", "  ", " \t "])
LINES = st.builds(
    lambda fields, blank, tail: blank.join(fields) + tail,
    st.lists(FIELDS, min_size=0, max_size=7),
    BLANKS,
    st.sampled_from(["", " ", "\r", "\v", "\0"]),
)


@given(st.lists(LINES, min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_junk_files_are_read_or_refused_alike(tmp_path_factory, lines, end, ends):
    path = tmp_path_factory.mktemp("junk") / "junk.run"
    usual = [f"q1 Q0 d{i} {i} {9 - i}.5 tag" for i in range(3)]
    path.write_bytes((end.join(usual + lines) + end * ends).encode())
    compiled, plain = both({"q1": {"d1": 1}}, str(path))
    assert compiled == plain


@given(st.integers(0, 10**6), st.sampled_from([*b" \t\r\n#.-+e9\0\xff", None]), st.booleans())
def test_readers_agree_on_a_file_with_one_changed_byte(tmp_path_factory, at, byte, twice):
    rows = [f"q{d // 7} Q0 doc-{d % 7} {d} {90 - d}.2500001 some-tag\n" for d in range(30)]
    text = bytearray("".join(rows).encode())
    at %= len(text)
    text[at : at + 1 + twice] = b"" if byte is None else bytes([byte]) * (1 + twice)
    path = tmp_path_factory.mktemp("changed") / "a.run"
    path.write_bytes(text)
    judgments = {"q1": {"doc-1": 1, "doc-4": 2}, "q4": {"doc-0": 1}}
    compiled, plain = both(judgments, str(path))
    assert compiled == plain


@pytest.mark.parametrize("shape", ["grouped", "shuffled", "tabs", "long ids", "not ASCII", "repeated"])
def test_files_are_read_alike(tmp_path: Path, shape):
    rng = random.Random(shape)
    long = "x" * 150 if shape == "long ids" else "é" * (shape == "not ASCII")
    rows = [
        f"q{q} Q0 {long}d{d} {d} {rng.choice([rng.random(), rng.gauss(0, 1e-8), 0.5])!r} t"
        for q in range(40)
        for d in range(60)
    ]
    if shape == "shuffled":
        rng.shuffle(rows)
    if shape == "repeated":
        rows.append(rows[3])
    text = "\n".join(rows) + "\n"
    path = tmp_path / "a.run"
    path.write_text(text.replace(" ", "\t") if shape == "tabs" else text)
    judgments = {f"q{q}": {f"{long}d{d}": d % 3 for d in range(0, 60, 7)} for q in range(45)}
    compiled, plain = both(judgments, str(path))
    assert compiled == plain
    assert rg.evaluate(judgments, rg.Run.of(str(path)) if shape != "repeated" else {"q1": ["a"]}, MEASURES)


@pytest.mark.parametrize("piece", [300, 1 << 20])
@pytest.mark.parametrize("ids", ["d{}", "document-number-{:09d}", "é{}", "d{}" + 80 * "x"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_files_read_whole_have_the_same_rows_and_fewer_bytes(tmp_path, monkeypatch, piece, ids, shuffled):
    monkeypatch.setattr(fast_trec, "_PIECE", max(piece, 8 * len(ids)))
    rng = random.Random(piece)
    rows = [f"q{q} Q0 {ids.format(d)} {d} {rng.random()!r} t\n" for q in range(9) for d in range(50)]
    if shuffled:
        rng.shuffle(rows)
    path = tmp_path / "a.run"
    path.write_text("# a comment\n" + "".join(rows) + "\n \n")
    compiled = read_table(path, RUN)
    assert len(compiled.docs.data) == compiled.docs.lengths.sum() + 16
    monkeypatch.setattr(native, "core", None)
    plain = read_table(path, RUN)
    assert compiled == plain
    assert compiled.lines.tolist() == plain.lines.tolist()
    assert (compiled.source, compiled.notes) == (plain.source, plain.notes)


def test_ids_are_packed_only_where_there_is_room():
    data = np.frombuffer(b"one two" + bytes(32), np.uint8)
    starts, lengths, packed = np.array([0, 4]), np.array([3, 3]), np.zeros(22, np.uint8)
    assert native.core.pack_ids(data, starts, lengths, 0, 2, packed[:21], 0) == -1
    assert native.core.pack_ids(data, np.array([0, 4]), lengths, 0, 2, packed, 0) == 6
    assert packed[:6].tobytes() == b"onetwo"
    for wrong in ((np.array([38, 4]), lengths, 0, 2), (starts, lengths, 1, 3)):
        with pytest.raises(ValueError, match="invalid ids"):
            native.core.pack_ids(data, *wrong, packed, 0)


DECIMALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(0, 1).map(repr),
    st.floats(0, 1).map(lambda value: f"{value:.17f}"),
    st.decimals(allow_nan=False, allow_infinity=False, places=12).map(str),
    st.from_regex(r"[+-]?[0-9]{0,25}\.?[0-9]{0,25}([eE][+-]?[0-9]{1,4})?", fullmatch=True),
)


@given(st.lists(DECIMALS, min_size=1, max_size=20))
def test_numbers_of_files_are_those_of_float(numbers):
    def read(text):
        try:
            return float(text)
        except ValueError:
            return math.nan

    values = [read(text) for text in numbers]
    text = "".join(f"q d{i} {number or '-'}\n" for i, number in enumerate(numbers)).encode()
    data = np.frombuffer(text + bytes(32), np.uint8)
    columns = [np.zeros(len(numbers), dtype) for dtype in (np.int64, np.int64, np.uint64, float, np.int32)]
    found = native.core.scan(native.core.numbering(), data, 0, len(text), (3, 0, 1, 2, -1), 0, *columns, NO_RANKS)
    if all(abs(value) < 2**53 for value in values):
        assert found is not None
        assert columns[3].tobytes() == np.array(values).tobytes()
    else:
        assert found is None


def test_decimals_of_all_lengths_are_rounded_as_float_rounds_them():
    rng = random.Random(4)
    numbers = [f"{rng.randrange(2**52, 2**53)}.5" for _ in range(200)]  # halfway: rounds to even
    # Some numbers of 19 digits are so close to halfway that the first 64 bits do not decide.
    numbers += [f"0.{rng.randrange(10**18, 10**19)}" for _ in range(30_000)]
    for _ in range(40_000):
        digits = "".join(rng.choices("0123456789", k=rng.randint(1, 25)))
        point = rng.randint(0, min(len(digits), 15))
        numbers.append(f"{digits[:point]}.{digits[point:]}e{rng.choice((0, 0, 1, -3, -20))}")
    # Large texts are read without the GIL, where an error indicator cannot be asked for.
    numbers += [f"-1.{'0' * 24}", f"-0.{'0' * 400}1e401", f"{'0' * 300}7.{'9' * 200}e-3", "1e-99999"]
    numbers = [number for number in numbers if float(number) < 2**53]
    assert len(numbers) > 55_000
    text = "".join(f"q d {number}\n" for number in numbers).encode()
    data = np.frombuffer(text + bytes(32), np.uint8)
    columns = [np.zeros(len(numbers), dtype) for dtype in (np.int64, np.int64, np.uint64, float, np.int32)]
    native.core.scan(native.core.numbering(), data, 0, len(text), (3, 0, 1, 2, -1), 0, *columns, NO_RANKS)
    assert columns[3].tolist() == [float(number) for number in numbers]


def test_a_query_that_began_in_an_earlier_block_has_no_first_line():
    numbering = native.core.numbering()
    columns = [np.zeros(9, dtype) for dtype in (np.int64, np.int64, np.uint64, float, np.int32)]

    def scan(text):
        data = np.frombuffer(text + bytes(32), np.uint8)
        return native.core.scan(numbering, data, 0, len(text), (3, 0, 1, 2, -1), 0, *columns, NO_RANKS)

    # Lines, whether queries are grouped, ASCII, row and start of the last query.
    assert scan(b"q1 d1 1\nq2 d1 1\nq2 d2 0\n") == (3, True, True, 1, 8)
    assert scan(b"q2 d3 0\n") == (1, True, True, -1, -1)
    assert scan(b"q2 d4 0\nq3 d1 1\n") == (2, True, True, 1, 8)
    assert scan(b"q3 d2 0\nq1 d9 1\n")[1] is False


@pytest.mark.parametrize("odd", ["4", "1.5", "-3e0", "007", "x", "nan", "1e400", "1_0"])
@pytest.mark.parametrize("blocks", [False, True])
def test_ranks_are_read_alike(odd, blocks, tmp_path, monkeypatch):
    ranks = [str(rank) for rank in range(1, 400)]
    ranks[250] = odd
    text = "".join(f"q{n // 9} Q0 d{n % 9} {rank} {n}.5 t\n" for n, rank in enumerate(ranks))
    path = tmp_path / "a.run"
    path.write_text(text if blocks else text + "q0 Q0 late 2 1 t\n")
    monkeypatch.setattr(fast_trec, "_BLOCK", 4000)
    monkeypatch.setattr(fast_trec, "_PIECE", 900)

    def read():
        whole = [] if blocks else [read_table(path, RUN, ranks=True)]
        # A block is valid until the next one is read.
        return [
            [None if column is None else column.tolist() for column in (t.values, t.lines, t.ranks)]
            for t in whole or PairFile(path, RUN, ranks=True).blocks()
        ]

    compiled = read()
    monkeypatch.setattr(native, "core", None)
    assert compiled == read()


@pytest.mark.parametrize(
    ("hashes", "sizes", "differ"),
    [
        ([0, 5 << 40], [2], True),
        ([0, 0], [2], False),
        ([0, 0], [1, 1], True),
        ([7, 0, 7], [3], False),
        ([1 << 37, 1 << 38, 3 << 37, 1 << 38], [4], False),
        ([0, 1 << 40, 2 << 40, 0], [2, 2], True),
        ([], [0], True),
    ],
)
def test_equal_hashes_of_a_query_are_found_and_a_hash_may_be_zero(hashes, sizes, differ):
    offsets = np.cumsum([0, *sizes])
    assert native.core.all_differ(np.array(hashes, np.uint64), offsets) is differ


def test_whole_scores_that_are_no_float_are_left_to_the_error_of_python():
    run = {"q": {"a": 2**53, "b": 2**53 + 1, "c": 1}}
    compiled, plain = both({"q": {"a": 1}}, run)
    assert compiled == plain
    assert native.core.pack_dicts([run["q"]]) is None
    assert native.core.pack_dicts([{"a": 2**53 - 1}]) is not None


def slow_summary(run, judgments):
    """`InputSummary.ends` by query, and counts of the run, from their definitions."""
    ends, tally = ([], dict.fromkeys(("documents", "rising", "varied", "longer", "uneven", "tied"), 0))
    for name, ranking in run.items():
        scores = list(ranking.values())
        differs = len(set(scores)) > 1
        tally["documents"] += len(scores)
        tally["longer"] |= len(scores) > 1
        tally["uneven"] |= differs
        if len(scores) >= 3:
            tally["varied"] += differs
            tally["rising"] += differs and scores == sorted(scores)
        if name not in judgments:
            continue
        by_id = sorted(ranking, reverse=True)
        best = sorted(by_id, key=lambda doc, of=ranking: -of[doc])
        worst = sorted(by_id, key=lambda doc, of=ranking: of[doc])
        grades = judgments[name]
        ones = [n for n, doc in enumerate(best, 1) if grades.get(doc, -1) > 0]
        zeros = [n for n, doc in enumerate(best, 1) if grades.get(doc, -1) == 0]
        last = [n for n, doc in enumerate(worst, 1) if grades.get(doc, -1) > 0]
        known = sum(doc in grades for doc in ranking)
        ends.append(
            [
                len(scores),
                known,
                len(ones),
                sum(ones),
                len(zeros),
                sum(zeros),
                min(ones, default=0),
                min(last, default=0),
            ]
        )
        groups = {}
        for doc, score in ranking.items():
            groups.setdefault(score, set()).add(max(grades.get(doc, 0), 0))
        tally["tied"] += any(len(group) > 1 for group in groups.values())
    *counts, tied = map(int, tally.values())
    return ends, (*counts, 0, 1, tied, 0)  # nothing removed or declined, and one query without judgments


SCORED = st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.sampled_from([None, -1, 0, 1, 2]))


@given(st.lists(st.lists(SCORED, max_size=6), min_size=1, max_size=4))
def test_counts_for_the_checks_of_a_run_are_those_of_their_definitions(rankings):
    run, judgments = {"unknown": {"a": 1.0, "b": 2.0, "c": 3.0}}, {}
    for q, ranking in enumerate(rankings):
        run[f"q{q}"] = {f"d{place}": score for place, (score, _) in enumerate(ranking)}
        judgments[f"q{q}"] = {
            f"d{place}": float(grade) for place, (_, grade) in enumerate(ranking) if grade is not None
        } | {"absent": 1.0}
    docs = [doc for grades in judgments.values() for doc in grades]
    ideal = [sorted((g for g in grades.values() if g >= 0), reverse=True) for grades in judgments.values()]
    columns = (
        np.array([g for grades in judgments.values() for g in grades.values()]),
        offsets_of([*map(len, judgments.values())]),
        np.concatenate(ideal),
        offsets_of([len(each) for each in ideal]),
        np.ones(20),
    )
    names = {name: number for number, name in enumerate(judgments)}
    found = native.core.measure_dicts(run, names, docs, columns, np.zeros(0), (0, 0), 1, 0)
    ends, tally = slow_summary(run, judgments)
    assert np.frombuffer(found[2]).reshape(-1, 8).tolist() == ends
    assert found[3] == tally
    assert found[4] == ["unknown"]


@given(st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=6))
def test_a_repeated_document_is_found(rankings):
    docs = [doc for ranking in rankings for doc in ranking]
    if not docs:
        return
    offsets = offsets_of([len(ranking) for ranking in rankings])
    queries = Ids.of([f"q{i}" for i in range(len(rankings))])
    table = PairTable(queries, offsets, Ids.of(docs), np.zeros(len(docs)))
    repeated = [ranking for ranking in rankings if len(set(ranking)) < len(ranking)]
    assert bool(table.repeats()) == bool(repeated)


def _decimal(parts: tuple[int, int]) -> float:
    """A number as people write it: a few digits and a decimal point."""
    digits, behind = parts
    return digits / 10**behind


NUMBERS = st.one_of(
    st.floats(allow_nan=False),
    st.floats(1e-5, 1e16),
    st.tuples(st.integers(-(10**16), 10**16), st.integers(0, 17)).map(_decimal),
    st.integers(-60, 60).map(lambda power: 2.0**power),
)


@given(st.lists(st.tuples(NUMBERS, st.sampled_from([0.0, -math.inf, math.inf])), min_size=1))
def test_numbers_are_written_as_python_writes_them(pairs):
    # Each number with its neighbors, which need the most digits to be distinct.
    values = [value for number, up in pairs for value in (number, math.nextafter(number, up))]
    ids = Ids.of([f"d{n}" for n in range(len(values))])
    found = native.core.row_lines(*ids.columns(), np.array(values), b"q ", b" ", b" t\n", 3)
    wanted = [f"q d{n} {n + 3} {value!r} t\n" for n, value in enumerate(values)]
    assert found == "".join(wanted).encode()


def test_numbers_halfway_between_two_decimals_are_written_with_the_even_digit():
    """From 2**49 on doubles are eighths: n + 1/4 is equally near to n.2 and n.3."""
    rng = random.Random(2)
    values = [rng.randrange(2**49, 10**15) + k / 8 for k in range(8) for _ in range(50)]
    values += [math.nextafter(2.0**n, up) for n in range(-13, 50) for up in (0, 2.0**n, 1e300)]
    values += [10 ** rng.uniform(-4, 15) for _ in range(20_000)]
    ids = Ids.of(["d"] * len(values))
    found = native.core.row_lines(*ids.columns(), np.array(values), b"", b" ", b"\n", 0)
    assert found.decode().split() == [text for value in values for text in ("d", repr(value))]


@pytest.mark.parametrize("strange", ['"', ",", "\\", " ", "\n", "\x7f", "é"])
def test_an_id_that_a_format_may_quote_is_left_to_python(strange):
    ids = Ids.of(["plain", f"a{strange}b"])
    assert native.core.row_lines(*ids.columns(), np.zeros(2), b"", b"\t", b"\n", 0) is None
    ids = Ids.of(["<a>&'b'", "c|d;e"])
    found = native.core.row_lines(*ids.columns(), np.zeros(2), b"", b"\t", b"\n", 0)
    assert found == b"<a>&'b'\t0.0\nc|d;e\t0.0\n"


def test_memory_is_freed_by_the_allocator_that_gave_it(tmp_path):
    """With ``PYTHONMALLOC=debug``, a wrong allocator aborts the process."""
    path = tmp_path / "a.run"
    path.write_text("".join(f"q{n // 9} Q0 d{n} 1 {9 - n % 9} t\n" for n in range(3000)))
    code = f"""
import rankgauge as rg
qrels = {{f"q{{n}}": {{f"d{{9 * n}}": 1}} for n in range(300)}}
assert rg.evaluate(qrels, {str(path)!r}, ["AP", "RR@10"]).mean()["RR@10"] == 1
assert rg.evaluate(qrels, {{"q1": {{"d9": 2.0, "x": 1.0}}}}, "AP").value("q1", "AP") == 1
rg.convert({str(path)!r}, {str(tmp_path / "b.tsv")!r}, target_format="trec")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONMALLOC": "debug"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def _ranked(run, ties, depth, core):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "core", core)
        table = ranked(run, ties=ties, depth=depth).table
    return table.docs.tolist(), table.values.tobytes(), table.offsets.tolist()


@given(RUNS, st.sampled_from(["trec", "input"]), st.sampled_from([None, 1, 3]))
def test_rankings_are_sorted_alike(given_run, ties, depth):
    run = rg.Run.of(given_run)
    assert _ranked(run, ties, depth, native.core) == _ranked(run, ties, depth, None)


@pytest.mark.parametrize("values", [4, 500, 10**9])
@pytest.mark.parametrize("size", [2, 3, 64, 1000, 20_000])
def test_long_rankings_are_sorted_as_python_sorts_them(values, size):
    rng = random.Random(size + values)
    scores = {f"d{n}": rng.randrange(values) / 8 - 3 for n in rng.sample(range(size), size)}
    for given_scores in (scores, dict(sorted(scores.items(), key=lambda item: -item[1]))):
        run = rg.Run.of({"q0": {"x": 1.0}, "q1": given_scores, "q2": {"a": 1.0, "b": 2.0}})
        for ties in ("trec", "input"):
            docs = sorted(given_scores, reverse=True) if ties == "trec" else list(given_scores)
            docs.sort(key=lambda doc: -given_scores[doc])
            found = _ranked(run, ties, None, native.core)[0]
            assert found == [doc.encode() for doc in ("x", *docs, "b", "a")]


@given(st.lists(RUNS, min_size=1, max_size=4))
def test_runs_are_aligned_alike(open_runs):
    def found(core):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "core", core)
            aligned = align([ranked(rg.Run.of(run)) for run in open_runs])
        docs, rows = aligned.docs.tolist(), aligned.rows.tolist()
        pairs = list(zip(docs, rows, strict=True))
        ends = aligned.offsets.tolist()
        parts = [sorted(pairs[a:b]) for a, b in itertools.pairwise(ends)]
        if core is not None:
            assert aligned.docs.hashes().tolist() == Ids.of(docs).hashes().tolist()
        return dict(zip(aligned.queries.tolist(), parts, strict=True)), aligned.tables

    compiled, tables = found(native.core)
    assert compiled == found(None)[0]
    for query, pairs in compiled.items():
        wanted = {doc for run in open_runs for doc in run.get(query.decode(), ())}
        assert [doc for doc, _ in pairs] == sorted(doc.encode() for doc in wanted)
        for doc, rows in pairs:
            for table, run, row in zip(tables, open_runs, rows, strict=True):
                assert (row >= 0) == (doc.decode() in run.get(query.decode(), {}))
                assert row < 0 or table.docs[row] == doc


@pytest.mark.parametrize("runs", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("seed", range(6))
def test_terms_are_summed_alike(runs, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    terms = rng.normal(size=(500, runs)) * 10.0 ** rng.integers(-9, 9, (500, runs))
    terms[::2] = rng.integers(-2, 3, (250, runs))  # many equal ones
    if seed % 3:
        terms[1::2] *= 1e295  # their products have no error term
    low = terms * 1e-17 * rng.integers(-2, 3, terms.shape) if seed % 2 else None
    given_terms = terms, low, None if seed % 3 else rng.random(runs).round(1)
    compiled, mixed = total(*given_terms), rng.permutation(runs)
    assert total(*(part if part is None else part[..., mixed] for part in given_terms)).tolist() == compiled.tolist()
    monkeypatch.setattr(native, "core", None)
    assert total(*given_terms).tolist() == compiled.tolist()


def test_ids_of_one_hash_are_aligned_by_their_bytes():
    ids, hashes = Ids.of(["a", "b", "b", "c", "a"]), np.zeros(5, np.uint64)
    column = (*ids.columns(), hashes)
    first, sizes = np.array([[0, 2]]), np.array([[2, 3]])
    rows, counts, data, *_ = native.core.align([column, column], first, sizes)
    assert np.frombuffer(rows, np.int64).tolist() == [0, 4, 1, 2, -1, 3]
    assert (np.frombuffer(counts, np.int64).tolist(), bytes(data)) == ([3], b"abc" + bytes(8))


def test_a_core_of_another_version_is_left_out(monkeypatch):
    monkeypatch.delenv("RANKGAUGE_NATIVE", raising=False)
    monkeypatch.setattr(native.core, "VERSION", native.core.VERSION - 1)
    assert native._load() is None  # noqa: SLF001 - what is loaded when a process starts


def test_arguments_of_the_wrong_size_are_refused():
    grades, program = np.zeros(1), np.array([[0.0, 1.0, 1.0, 1.0, 0.0]])
    bounds, docs = np.array([0, 1]), ["d"]
    columns = (grades, bounds, grades, bounds, np.zeros(9))
    run, rest = {"q": {"d": 1.0}}, ((1, 1), True, False)
    assert native.core.measure_dicts(run, {"q": 0}, docs, columns, program, *rest)
    for names, given_docs, rows, message in (
        ({"q": 1}, docs, program, "invalid query number"),
        ({"q": 0}, ["d", "e"], program, "invalid judgments"),
        ({"q": 0}, [], program, "invalid judgments"),
        ({"q": 0}, docs, -program, "invalid measures"),
        ({"q": 0}, docs, program[0, :3], "invalid measures"),
    ):
        with pytest.raises(ValueError, match=message):
            native.core.measure_dicts(run, names, given_docs, columns, rows, *rest)
    with pytest.raises(TypeError):
        native.core.measure_grades(["1"], [], np.zeros(9), program)
    assert native.core.measure_grades([1.0] * 9, [], np.zeros(9), program) is None


@given(st.lists(st.integers(0, 4), max_size=40))
def test_rows_are_grouped_in_their_order(groups):
    numbers, rows = np.array(groups, dtype=np.int32), np.arange(7, 7 + len(groups))
    sizes, into = np.bincount(numbers, minlength=5), np.zeros_like(rows)
    native.core.group(numbers, np.cumsum(sizes) - sizes, rows, into)
    assert into.tolist() == [7 + row for n in range(5) for row, g in enumerate(groups) if g == n]


def test_arrays_of_the_wrong_size_are_refused():
    numbers, places, rows = np.zeros(2, np.int32), np.zeros(1, np.int64), np.zeros(2)
    for wrong in (
        (numbers + 1, places, rows, rows),
        (numbers - 1, places, rows, rows),
        (numbers, places + 1, rows, rows),
        (numbers, places - 1, rows, rows),
        (numbers, places, rows[:1], rows),
        (numbers, places, rows, rows[:1]),
        (numbers, places[:0], rows, rows),
    ):
        with pytest.raises(ValueError, match="invalid groups"):
            native.core.group(wrong[0], wrong[1].copy(), *wrong[2:])
    hashes, offsets = np.zeros(3, np.uint64), np.array([0, 2], np.int64)
    with pytest.raises(ValueError, match="invalid offsets"):
        native.core.all_differ(hashes, offsets)
    with pytest.raises(ValueError, match="unexpected array item size"):
        native.core.all_differ(np.zeros(3, np.uint8), offsets)
    with pytest.raises(ValueError, match="invalid ids"):
        native.core.number_ids(None, np.zeros(3, np.uint8), np.array([2]), np.array([2]), np.zeros(1, np.uint64))
    for ids, numbers in (((np.zeros(3, np.uint8), np.array([2]), np.array([2])), 1), (Ids.of(["a"]).columns(), 2)):
        with pytest.raises(ValueError, match="invalid ids"):
            native.core.number_ids(native.core.numbering(), *ids, np.zeros(numbers, np.int32))
    for terms, low in ((3, 0), (4, 3)):
        with pytest.raises(ValueError, match="invalid terms"):
            native.core.sum_terms(np.zeros(terms), np.zeros(low), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="invalid ids or numbers"):
        native.core.row_lines(*Ids.of(["a"]).columns(), np.zeros(2), b"", b"", b"", 0)
    for values, ends in ((np.zeros(2), [0, 1]), (np.zeros(1), [0, 2]), (np.zeros(1), [0, 2, 1])):
        with pytest.raises(ValueError, match="invalid run columns"):
            native.core.rank_rows(*Ids.of(["a"]).columns(), values, np.array(ends), *(True,))
    column, one = (*Ids.of(["a"]).columns(), np.zeros(1, np.uint64)), np.array([[1]])
    with pytest.raises(ValueError, match="invalid ids or hashes"):
        native.core.align([(*column[:3], np.zeros(2, np.uint64))], one - 1, one)
    for first, sizes in ((one, one), (one - 2, one), (one - 1, -one), (one, one[:0])):
        with pytest.raises(ValueError, match="invalid rows"):
            native.core.align([column], first, sizes)
    with pytest.raises(ValueError, match="invalid rows"):
        native.core.align([], one[:0], one[:0])
    with pytest.raises(IndexError):
        native.core.align([column[:2]], one - 1, one)


def test_draws_of_the_wrong_size_are_refused():
    keys = np.zeros(3, np.uint64)
    for columns, sums in ((np.zeros(7), np.zeros(128)), (np.zeros(6), np.zeros(127)), (np.zeros(6), np.zeros(96))):
        with pytest.raises(ValueError, match="invalid columns"):
            native.core.flip_signs(columns, keys, 0, sums)


WITHOUT_CORE = """
import sys
sys.modules["rankgauge.core._native"] = None
"""
EVALUATE_TWICE = """
import rankgauge
for _ in range(2):
    found = rankgauge.evaluate(*sys.argv[1:], "AP")
"""
EVALUATE = """
from rankgauge.cli.main import main
sys.argv.insert(1, "evaluate")
main()
"""


@pytest.mark.parametrize("disabled", [False, True])
@pytest.mark.parametrize("script", [EVALUATE_TWICE, EVALUATE])
def test_a_missing_core_is_reported_once(tmp_path, script, disabled):
    qrels, run = tmp_path / "qrels.txt", tmp_path / "a.run"
    qrels.write_text("q 0 d 1\n")
    run.write_text("q Q0 d 1 0.5 t\n")
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_CORE + script, qrels, run],
        env={**os.environ, "RANKGAUGE_NATIVE": "0" if disabled else "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stderr.count("compiled core of rankgauge is missing") == (not disabled)
    assert found.stderr.count("pip install") == (not disabled)
    assert script is EVALUATE_TWICE or disabled or found.stderr.startswith("Warning: ")
