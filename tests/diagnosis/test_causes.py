"""Causes: every seeded cause is found, and no absent cause is reported."""

import json
from typing import Any

import pytest

from rankgauge import Collection, Run, diagnose, evaluate
from rankgauge.diagnosis import CAUSES, Diagnosis, QueryDiagnosis
from rankgauge.diagnosis.ranked_queries import by_chance

FILLER = {
    f"f{n}": " ".join(f"{word}{n}" for word in ("alpha", "beta", "gamma", "delta", "epsilon", "eta")) for n in range(8)
}


def finding(
    run: list[str],
    judged: dict[str, float],
    texts: dict[str, str] | None = None,
    query: str | None = None,
    **words: Any,
) -> QueryDiagnosis | None:
    """Return the diagnosis of one query; without texts, from ranks and judgments alone."""
    collection = None
    if texts is not None:
        collection = Collection.of(FILLER | texts, None if query is None else {"q": query})
    return diagnose({"q": judged}, {"q": run}, collection, **{"k": 2, **words}).of("q")


def claimed(*given: Any, **words: Any) -> set[str]:
    found = finding(*given, **words)
    return set() if found is None else set(found.causes)


def test_a_document_at_no_rank_was_not_retrieved():
    found = finding(["f1", "f2", "f3"], {"d": 1})
    assert found.causes == ("not retrieved",)
    assert found.missed[0].rank is None
    assert found.missed[0].evidence == ("not among the 3 retrieved",)


def test_a_document_below_k_is_a_ranking_problem():
    found = finding(["f1", "f2", "d"], {"d": 1})
    assert found.causes == ("ranked below k",)
    assert found.missed[0].evidence == ("rank 3",)
    assert "reranking" in {c.fix for c in CAUSES if c.name == found.primary}


def test_nothing_is_wrong_with_a_perfect_ranking():
    assert finding(["d", "f1", "f2"], {"d": 1}) is None
    assert finding(["d", "e"], {"d": 1, "e": 1, "third": 1}, measure="P@2") is None


def test_a_better_document_below_k_is_missed_though_the_first_k_are_all_relevant():
    found = finding(["d", "e", "best"], {"d": 1, "e": 1, "best": 3, "other": 1})
    assert [doc.doc_id for doc in found.missed] == ["best"]


def test_a_better_document_low_in_the_first_k_is_reported():
    found = finding(["f1", "d"], {"d": 1})
    assert (found.causes, found.missed) == (("low in the top k",), ())
    assert "grade 1 at rank 2 is ranked below grade 0 at rank 1" in found.evidence[0]
    assert "low in the top k" not in claimed(["d", "f1"], {"d": 1})
    assert "low in the top k" not in claimed(["f1", "d"], {"d": 1, "e": 1})


def test_losses_below_k_alone_have_no_cause():
    found = finding(["a", "b", "f1", "c"], {"a": 1, "b": 1, "c": 1}, measure="nDCG@4")
    assert (found.causes, found.missed, found.primary) == ((), (), "")


def test_no_term_in_common_is_a_vocabulary_gap():
    texts = {"d": "Lost property is kept at the desk"}
    found = finding(["f1", "f2", "d"], {"d": 1}, texts, "I forgot my umbrella")
    assert found.primary == "vocabulary gap"
    assert found.terms == ("forgot", "umbrella")
    assert found.missed[0].evidence[0] == "no term of the query in it"


@pytest.mark.parametrize("text", ["Umbrellas are kept", "", "We forgot"])
def test_a_term_in_common_or_no_text_is_no_gap(text):
    assert "vocabulary gap" not in claimed(["f1", "f2", "d"], {"d": 1}, {"d": text}, "I forgot my umbrella")


def test_a_title_counts_as_text():
    collection = Collection.of({"d": {"title": "Umbrellas", "text": "kept"}}, {"q": "my umbrella"})
    found = diagnose({"q": {"d": 1}}, {"q": ["x", "d"]}, collection, k=1).of("q")
    assert "vocabulary gap" not in found.causes


def test_a_query_of_function_words_has_no_gap_but_says_so():
    collection = Collection.of({"d": "text"}, {"q": "how do I"})
    found = diagnose({"q": {"d": 1}}, {"q": ["x", "d"]}, collection, k=1)
    assert "vocabulary gap" not in found.of("q").causes
    assert any("terms of 1 query: no text, or only function words" in t for t in found.not_checked)


def test_terms_that_the_ranking_ignored_are_found():
    texts = {"d": "Error code E4711 on the printer", "a": "printer problems", "b": "printers"}
    found = finding(["a", "b", "d"], {"d": 1}, texts, "printer error E4711")
    assert found.primary == "ignored query terms"
    assert found.missed[0].evidence[0] == ("has 3 of 3 terms of the query; documents ranked above it have at most 1")


@pytest.mark.parametrize(
    ("texts", "query"),
    [
        ({"d": "printer error E4711", "a": "printer error E4711 too"}, "printer error E4711"),
        ({"d": "printer", "a": "other"}, "printer"),
        ({"d": "a1 b2 c3 d4 e5", "a": "a1 b2 c3 d4"}, "a1 b2 c3 d4 e5"),
        ({"d": "printer error", "a": "other"}, "printer error E4711 paper jam"),
    ],
)
def test_terms_do_not_count_as_ignored_if_other_documents_have_as_many_or_few(texts, query):
    assert "ignored query terms" not in claimed(["a", "f2", "d"], {"d": 1}, texts, query)


def test_two_ignored_terms_are_enough_and_the_ranking_may_have_three_in_four():
    two, four = "lost umbrella", "lost blue umbrella station"
    assert "ignored query terms" in claimed(["f1", "f2", "d"], {"d": 1}, {"d": two}, two)
    texts = {"d": four, "a": "lost blue umbrella here"}
    assert "ignored query terms" in claimed(["a", "f2", "d"], {"d": 1}, texts, four)


def test_one_term_in_five_is_no_gap_in_a_run_that_retrieves_such_documents():
    texts, query = {"d": "the lost one"}, "lost blue umbrella station bus"
    assert claimed(["f1", "f2"], {"d": 1}, texts, query) == {"not retrieved"}


def test_an_unknown_text_in_its_place_leaves_ignored_terms_open():
    texts = {"d": "printer error E4711"}
    assert "ignored query terms" not in claimed(["x", "f2", "d"], {"d": 1}, texts, "printer error E4711")


def lengths(missed_long: int, missed_usual: int):
    """One query for each of six very long and six usual documents; this many of each are missed."""
    texts = {f"l{n}": f"word{n} " * 400 for n in range(6)}
    texts |= {f"u{n}": f"word{n} usual length of text" for n in range(30)}
    qrels, run = {}, {}
    for n in range(6):
        for kind, missed in (("l", missed_long), ("u", missed_usual)):
            qrels[f"{kind}{n}"] = {f"{kind}{n}": 1}
            run[f"{kind}{n}"] = ["u20", f"{kind}{n}"] if n < missed else [f"{kind}{n}", "u20"]
    return diagnose(qrels, run, Collection.of(texts), k=1)


def test_long_documents_that_are_missed_more_often_are_found():
    found = lengths(missed_long=6, missed_usual=1)
    assert found.of("l0").primary == "very long or short"
    assert found.of("l0").missed[0].evidence[0].startswith("very long: 2,")
    assert "very long or short" not in found.of("u0").causes
    chunking = next(fix for fix in found.fixes if fix.name == "chunking")
    assert chunking.evidence[0] == ("missed: 6 of 6 very long relevant documents, and 1 of 6 of usual length")


def test_more_than_chance_is_as_scipy_has_it():
    fisher = pytest.importorskip("scipy.stats").fisher_exact
    for some in ((3, 3), (3, 9), (8, 9), (9, 9), (40, 60)):
        for others in ((0, 3), (3, 6), (9, 9), (1243, 1584), (0, 0)):
            table = [[some[0], some[1] - some[0]], [others[0], others[1] - others[0]]]
            wanted = fisher(table, alternative="greater")[1]
            assert by_chance(some, others) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(("missed_long", "missed_usual"), [(4, 4), (4, 5), (2, 0), (4, 1), (3, 0)])
def test_length_is_not_claimed_where_long_documents_are_not_missed_more_often(missed_long, missed_usual):
    found = lengths(missed_long, missed_usual)
    assert not any("very long or short" in one.causes for one in found.diagnoses)
    assert next(fix for fix in found.fixes if fix.name == "chunking").evidence == ()


COPY = "The library opens at nine on weekdays and at ten on Saturdays and closes at six."


def test_near_duplicates_that_crowd_the_top_are_found():
    found = finding(["a", "b", "d"], {"d": 1}, {"a": COPY, "b": COPY.upper(), "d": "else"})
    assert found.primary == "duplicates crowd the top"
    assert found.evidence == ("1 of the first 2 repeat another: b repeats a (1.00)",)


def test_duplicates_do_not_count_where_nothing_is_missed_or_texts_differ():
    texts = {"a": COPY, "b": COPY, "d": "else", "e": COPY.replace("nine", "noon on"), "x": ""}
    assert "duplicates crowd the top" not in claimed(["d", "a", "b"], {"d": 1, "a": 1}, texts)
    assert "duplicates crowd the top" not in claimed(["a", "e", "d"], {"d": 1}, texts)
    assert "duplicates crowd the top" not in claimed(["a", "f1", "b", "d"], {"d": 1}, texts)


def test_a_copy_of_a_relevant_document_is_a_duplicate_and_no_wrong_judgment():
    found = finding(["f1", "e", "d"], {"d": 2}, {"d": COPY, "e": COPY})
    assert found.causes == ("duplicates crowd the top", "ranked below k")
    assert found.evidence == ("1 of the first 2 repeat another: e repeats d (relevant)",)


def cut(run: dict[str, list[str]], **options: Any) -> Diagnosis:
    return diagnose({query: {"d": 1} for query in run}, run, k=2, **options)


def test_rankings_that_end_at_one_rank_are_cut_and_no_model_is_blamed():
    found = cut({f"q{n}": ["x", "y", "z", "w"] for n in range(8)})
    assert {one.primary for one in found.diagnoses} == {"rankings cut"}
    assert found.of("q0").missed[0].evidence == ("may be below rank 4, at which the rankings are cut",)
    assert found.fixes[0].evidence[0] == (
        "rankings are cut at 4: 8 missed documents in 8 queries may be below; retrieve deeper"
    )
    assert "embedding model" not in {fix.name for fix in found.fixes if fix.evidence}
    assert "likely cause: rankings cut (8 queries; nDCG@10 +0.021, 97% CI" in found.summary()
    assert found.summary().endswith("suggested fix: retrieve deeper")


def test_no_cause_of_fewer_than_eight_queries_stands_out():
    found = cut({f"q{n}": ["x", "y", "z", "w"] for n in range(7)})
    assert found.first_causes == ()
    assert "no single cause stands out" in found.summary()
    (gain,) = (total.gain for total in found.totals if total.queries)
    assert (gain.low, gain.mean > 0) == (0, True)


def test_the_cause_with_the_largest_gain_is_first_whatever_the_number_of_queries():
    rankings = {"a": ["d"], "b": ["x", "y", "d", *"zvw"], "c": ["x", *"yzvw", *"stuopq"]}
    run = {f"{kind}{n}": docs for kind, docs in rankings.items() for n in range(20)}
    judgments = {query: {"d": 1} if query[0] != "b" else {"d": 1, "e": 1, "f": 1} for query in run}
    found = diagnose(judgments, run, k=2)
    assert [(total.cause.name, total.queries) for total in found.first_causes] == [
        ("not retrieved", 40),
        ("ranked below k", 20),
    ]
    first, second = (total.gain for total in found.first_causes)
    assert first.mean > second.mean > second.low > 0
    assert "first: not retrieved cause" in " ".join(str(found).split())
    assert json.loads(found.to_json())["first_causes"] == ["not retrieved", "ranked below k"]
    assert cut({"q": ["d"]}).first_causes == ()


def test_a_cause_without_a_certain_gain_is_not_first():
    run = {f"q{n}": ["x", "y", "z", "d"][n % 4 :] for n in range(3)}
    found = diagnose({query: {"d": 1} for query in run}, run, k=2)
    assert found.failing == 2
    assert found.first_causes == ()
    assert "no single cause stands out" in found.summary()


def test_a_reversed_top_is_named_with_the_gain_of_reversing_it():
    ranking = [*(f"x{m}" for m in range(7)), "d", *(f"y{m}" for m in range(2 + 90))]
    run = {f"q{n}": ranking for n in range(30)}
    found = diagnose({query: {"d": 1} for query in run}, run, measure="RR")
    first = found.first_causes[0]
    assert (first.cause.name, first.gain.measured) == ("top reversed", True)
    assert first.gain.assumption == "the first 10 reversed"
    turned = {query: [*docs[:10][::-1], *docs[10:]] for query, docs in run.items()}
    gain = evaluate({query: {"d": 1} for query in run}, turned, "RR").mean()["RR"] - found.now["RR"]
    assert first.gain.mean == pytest.approx(gain)


@pytest.mark.parametrize("common", [{}, {"x": 1}])
def test_swapped_query_ids_are_found_by_their_terms(common):
    words = [f"word{n:02}" for n in range(40)]
    texts = {f"d{n}": f"{word} text about it" for n, word in enumerate(words)}
    asked = {f"q{n}": f"what is {word}" for n, word in enumerate(words)}
    ranking = {f"q{n}": [f"d{n}", "x", "y"] for n in range(40)}
    run = ranking | {f"q{n}": ranking[f"q{(n + 10) % 20}"] for n in range(20)}
    judged = {f"q{n}": {f"d{n}": 1, **common} for n in range(40)}
    found = diagnose(judged, run, Collection.of(texts, asked))
    first = found.first_causes[0]
    assert (first.cause.name, first.queries, first.gain.measured) == ("query ids swapped", 20, True)
    right = evaluate(judged, ranking, "nDCG@10").mean()["nDCG@10"]
    assert first.gain.mean == pytest.approx(right - found.now["nDCG@10"])
    assert found.of("q0").evidence[-1] == "the ranking of q10 has more terms of this query"
    sound = diagnose(judged, ranking, Collection.of(texts, asked))
    assert sound.failing == 0


def test_a_ranking_that_fits_its_own_query_is_of_no_other():
    words = [f"word{n:02}" for n in range(40)]
    texts = {f"d{n}": f"{word} text about it" for n, word in enumerate(words)}
    asked = {f"q{n}": f"what is {words[n % 20]}" for n in range(40)}
    run = {f"q{n}": [f"d{n}" if n < 20 else f"x{n}", "y"] for n in range(40)}
    found = diagnose({f"q{n}": {f"d{n % 20}": 1} for n in range(40)}, run, Collection.of(texts, asked))
    assert found.failing == 20
    assert "query ids swapped" not in {name for query in found.diagnoses for name in query.causes}


def test_ranks_in_the_order_of_query_terms_are_not_in_no_order():
    words = ["amber", "birch", "cedar", "dune"]
    run = {f"q{n}": [f"d{n}-{place}" for place in range(50)] for n in range(30)}
    judged = {q: {docs[(n + 7 * place) % 20]: 1 for place in range(3)} for n, (q, docs) in enumerate(run.items())}
    texts = {doc: " ".join(["text", *words[place // 5 :]]) for docs in run.values() for place, doc in enumerate(docs)}
    asked = dict.fromkeys(run, " ".join(words))
    found = [diagnose(judged, run, Collection.of(docs, asked)) for docs in (dict.fromkeys(texts, asked["q0"]), texts)]
    totals = [{total.cause.name: total.queries for total in one.totals} for one in found]
    assert [one["no order at the top"] > 0 for one in totals] == [True, False]


@pytest.mark.parametrize("share", [0.5, 1])
def test_swapped_query_ids_are_found_in_all_queries_or_beside_undefined_values(share):
    words = [f"word{n:02}" for n in range(40)]
    texts = {f"d{n}": f"{word} text about it" for n, word in enumerate(words)}
    asked = {f"q{n}": f"what is {word}" for n, word in enumerate(words)} | {"none": "what is nothing"}
    swapped = round(share * 40)
    run = {f"q{n}": [f"d{(n + 10) % swapped if n < swapped else n}", *"xyz"[: n % 4]] for n in range(40)}
    judged = {f"q{n}": {f"d{n}": 1} for n in range(40)}
    if share < 1:
        run, judged = run | {"none": ["x"]}, judged | {"none": {"x": 0}}
    first = diagnose(judged, run, Collection.of(texts, asked)).first_causes[0]
    assert (first.cause.name, first.queries) == ("query ids swapped", swapped)


@pytest.mark.parametrize(
    ("settings", "fix"),
    [
        ({}, "add keyword search (dense) or check stemming and tokens (lexical)"),
        ({"type": "bm25"}, "check stemming and tokens of index and queries"),
        ({"type": "chunked", "of": {"type": "dense"}}, "add keyword search"),
        ({"type": "dense", "encoder": {"type": "hashing"}}, "add keyword search"),
        (
            {"type": "hybrid", "of": [{"type": "bm25"}, {"type": "dense", "encoder": {"type": "hashing"}}]},
            "check stemming and tokens of index and queries",
        ),
        ({"type": "hybrid", "of": [{"type": "bm25"}, {"type": "dense"}]}, "more weight for keyword search"),
        (
            {"type": "elasticsearch", "body": {"knn": {}}},
            "add keyword search (dense) or check stemming and tokens (lexical)",
        ),
    ],
)
def test_advice_fits_the_kind_of_the_retriever(settings, fix):
    run = {f"q{n}": ["x", "y", "d", *"zvwstuopq"] for n in range(20)}
    texts = Collection.of({"d": "apples pears", "x": "one", "y": "two"}, dict.fromkeys(run, "apples pears"))
    found = diagnose({query: {"d": 1} for query in run}, Run.of(run, settings=settings), texts, k=2)
    first = found.first_causes[0]
    assert (first.cause.name, first.cause.fix) == ("ignored query terms", fix)
    assert first.gain.measured
    assert ("embedding model" in {fix.name for fix in found.fixes}) == (not fix.startswith("check"))
    evidence = [bool(fix.evidence) for fix in found.fixes]
    assert evidence == sorted(evidence, reverse=True)


def test_rankings_of_one_document_are_cut_and_empty_ones_are_not():
    found = cut({f"q{n}": ["x"] for n in range(4)})
    assert {one.primary for one in found.diagnoses} == {"rankings cut"}
    missed = finding([], {"d": 1}).missed[0]
    assert missed.causes == ("not retrieved",)
    assert missed.evidence == ("the run has no document for this query",)
    assert [one.cause.name for one in found.totals if one.systematic] == ["rankings cut"]


def test_the_depth_is_no_cause_below_the_cutoff_or_if_both_runs_are_cut():
    run = {f"q{n}": ["x", "y", "z", "w"] for n in range(4)}
    better = {query: ["x", "d", "z", "w"] for query in run}
    deeper = {query: [*docs, "v"] for query, docs in better.items()}
    assert cut(run, measure="P@4").diagnoses[0].primary == "rankings cut"
    assert cut(run, measure="RR").diagnoses[0].primary == "rankings cut"
    assert cut(run, also=deeper).diagnoses[0].primary == "rankings cut"
    for options in ({"measure": "P@3"}, {"also": better}):
        found = cut(run, **options)
        assert found.diagnoses[0].primary == "ranked below k"
        assert found.of("q0").missed[0].evidence == ("may be below rank 4, at which the rankings are cut",)
        evidence = {fix.name: fix.evidence for fix in found.fixes if fix.evidence}
        assert list(evidence)[-1] == "reranking"
        assert "retrieve deeper" not in evidence
        assert evidence["reranking"][0] == (
            "4 missed documents in 4 queries below rank 2; rankings are cut at 4: retrieve deeper"
        )


def test_rankings_that_end_at_different_ranks_or_deep_enough_are_not_cut():
    ranking = ["x", "y", "z", "w"]
    lengths = {f"q{n}": ranking[: n % 3 + 2] for n in range(6)}
    assert cut(lengths).diagnoses[0].primary == "not retrieved"
    assert cut(dict.fromkeys(lengths, ranking), depth=4).diagnoses[0].primary == "not retrieved"
    assert cut({"q": ranking}).diagnoses[0].primary == "not retrieved"
    few = {f"q{n}": ranking if n else ["x"] for n in range(5)}
    assert {one.query_id: one.primary for one in cut(few).diagnoses} == {
        "q0": "not retrieved",
        **dict.fromkeys(["q1", "q2", "q3", "q4"], "rankings cut"),
    }


def test_unjudged_documents_at_the_top_are_listed_and_come_first():
    found = finding(["f1", "f2", "d"], {"d": 1, "f7": 0})
    assert found.causes == ("unjudged at the top", "ranked below k")
    assert found.unjudged == ("f1", "f2")
    assert found.evidence == ("2 of the first 2 are unjudged: f1, f2",)


def test_few_unjudged_are_listed_and_no_cause():
    found = finding(["f1", "f2", "f3", "d"], {"d": 1, "f2": 0, "f3": 0}, k=3)
    assert found.causes == ("ranked below k",)
    assert found.unjudged == ("f1",)


def test_judgments_of_relevant_documents_only_leave_the_unjudged_open():
    found = diagnose({"q": {"d": 1}}, {"q": ["f1", "f2", "d"]}, k=2)
    assert found.of("q").causes == ("ranked below k",)
    assert any(text.startswith("unjudged at the top: ") for text in found.not_checked)
    assert not any(one.fix == "judging" for one in found.gains)


def test_negative_grades_count_as_unjudged():
    assert finding(["f1", "f2", "d"], {"d": 1, "f1": -1, "f2": 0}).unjudged == ("f1",)


@pytest.mark.parametrize(
    ("run", "judged", "texts", "said"),
    [
        (["f1", "f2"], {"gone": 1}, {}, "relevant, but not in the collection: gone"),
        (["f1", "f2"], {"d": 1}, {"d": " "}, "relevant, but without a text: d"),
        (["x1", "f2"], {"d": 1}, {"d": "a"}, "in the first 2, but not in the collection: x1"),
        (
            ["f1", "f2", "d"],
            {"d": 2, "e": 0},
            {"d": COPY, "e": COPY},
            "same words, different grades: e (grade 0) and d (grade 2)",
        ),
        (
            ["f1", "f2"],
            {"d": 2, "e": 1},
            {"d": COPY, "e": COPY},
            "same words, different grades: e (grade 1) and d (grade 2)",
        ),
    ],
)
def test_suspicious_judgments_are_reported_first(run, judged, texts, said):
    found = finding(run, judged, texts)
    assert found.primary == "suspicious judgments"
    assert said in found.evidence


def test_sound_judgments_are_not_suspected():
    texts = {"d": "one text", "e": "another text", "g": COPY, "h": COPY}
    judged = {"d": 1, "e": 0, "g": 1, "h": 1}
    assert "suspicious judgments" not in claimed(["f1", "f2", "d"], judged, texts)


def test_a_query_whose_documents_all_have_one_grade_is_suspected_where_others_differ():
    same = {f"d{n}": 1 for n in range(5)}
    mixed = {"d0": 1, "d1": 0}
    run = {"q1": ["x", "y"], "q2": ["x", "y"], "q3": ["x", "y"]}
    found = diagnose({"q1": same, "q2": mixed, "q3": mixed}, run, k=2)
    assert found.of("q1").evidence[0] == "all 5 judged documents have grade 1"
    assert found.of("q1").primary == "suspicious judgments"
    assert "suspicious judgments" not in found.of("q2").causes
    usual = diagnose({"q1": same, "q2": same, "q3": mixed}, run, k=2)
    assert "suspicious judgments" not in usual.of("q1").causes


def test_without_texts_only_ranks_and_judgments_are_checked():
    found = diagnose({"q": {"d": 1, "e": 0}}, {"q": ["e", "x", "d"]}, k=2)
    assert {t.cause.name for t in found.totals if t.checked} == {
        "rankings cut",
        "unjudged at the top",
        "top reversed",
        "no order at the top",
        "not retrieved",
        "ranked below k",
        "low in the top k",
    }
    (said,) = found.not_checked
    assert said.endswith(": no texts of documents were given")
    assert said.startswith("suspicious judgments (except for equal grades), query ids swapped, duplicates")
    half = diagnose({"q": {"d": 1, "e": 0}}, {"q": ["e", "d"]}, Collection.of({"d": "a"}), k=1)
    assert half.not_checked == (
        "query ids swapped, vocabulary gap, ignored query terms: no texts of queries were given",
    )


def test_totals_count_queries_and_documents():
    qrels = {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}, "q3": {"d": 1}}
    run = {"q1": ["x", "a"], "q2": ["x"], "q3": ["d"]}
    found = {t.cause.name: t for t in diagnose(qrels, run, k=1).totals}
    gone, below = found["not retrieved"], found["ranked below k"]
    assert (gone.queries, gone.documents, gone.primary) == (2, 2, 2)
    assert (below.queries, below.documents, below.primary) == (1, 1, 0)
    assert found["low in the top k"].documents is None


def test_the_primary_cause_is_that_of_at_least_half_of_the_best_documents_missed():
    texts = {"d": "nothing of it", "e": "umbrella", "g": "umbrella stand"}
    lesser = {"d": 1, "e": 2, "g": 2}
    found = finding(["f1", "f2", "e", "g", "d"], lesser, texts, "umbrella")
    assert found.causes == ("ranked below k", "vocabulary gap")
    equal = {"d": 2, "e": 2}
    assert finding(["f1", "f2", "e", "d"], equal, texts, "umbrella").primary == "vocabulary gap"


def test_half_of_the_first_k_unjudged_is_enough():
    judged = {"d": 1, "bad": 0, "e": 1}
    assert "unjudged at the top" in claimed(["bad", "x", "d"], judged, k=2)
    assert "unjudged at the top" not in claimed(["bad", "e", "x", "d"], judged | {"d": 2}, k=3)


def test_terms_count_as_ignored_regardless_of_documents_below_k():
    texts = {"d": "printer error E4711", "a": "other", "b": "words", "low": "printer error E4711 x"}
    given = (["a", "b", "low", "d"], {"d": 1}, texts, "printer error E4711")
    assert "ignored query terms" in claimed(*given)


def test_documents_of_a_lower_grade_do_not_choose_the_primary_cause():
    found = finding(["f1", "f2", "best"], {"best": 3, "e": 1, "g": 1})
    assert found.causes == ("ranked below k", "not retrieved")


def filtered(*, fields: bool) -> list[str]:
    """Return the evidence about the index if no document of the topic was retrieved."""
    topics = {f"d{n}": "tax" if n % 3 else "travel" for n in range(12)}
    word = {"tax": "customs", "travel": "voyage"}
    documents = {
        doc: {"text": f"shared {'plain' if fields else word[topic]} word{doc}"} | ({"topic": topic} if fields else {})
        for doc, topic in topics.items()
    }
    qrels = {f"q{n}": {doc: 1} for n, doc in enumerate(topics)}
    others = [doc for doc, topic in topics.items() if topic == "travel"]
    run = {q: [*others, f"x{n}", f"y{n}"][: 5 + n % 2] for n, q in enumerate(qrels)}
    collection = Collection.of(documents, dict.fromkeys(qrels, "shared"))
    found = diagnose(qrels, run, collection, k=5)
    (index,) = (fix for fix in found.fixes if fix.name == "index")
    return [line for line in index.evidence if "other relevant" in line]


def test_documents_in_no_ranking_are_described_by_the_field_or_term_that_they_share():
    message = "8 of 8 documents in no ranking have {}, and 0 of 4 other relevant ones: check for a filter"
    assert filtered(fields=True) == [message.format("topic = 'tax'")]
    assert filtered(fields=False) == [message.format("the term 'custom'")]
