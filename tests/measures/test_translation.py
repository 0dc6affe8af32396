"""Names of measures in other tools and in informal use: their meanings, and names without one.

The names of ir_measures and pytrec_eval come from these libraries; the others were copied from the
documentation and sources of the tools.
"""

from __future__ import annotations

import math
import re
from typing import Any

import ir_measures
import pytest
import pytrec_eval
from hypothesis import given, strategies as st
from strategies import completed

from rankgauge import UnknownName, list_measures, parse
from rankgauge.measures.declaration import DECLARED, NAMES, TREC
from rankgauge.measures.measure import parse_all
from rankgauge.measures.spellings import FAMILIES, FLAGS, NICKNAMES, TOOLS
from rankgauge.measures.translation import DIALECTS, tool_names, translate

# Names of ir_measures that need a dialect, since other tools use them with another meaning.
CLASHES = {"Accuracy"}
# Names of ir_measures that need a cut-off here, which is optional there.
NEED_A_CUT = {"alpha_DCG", "alpha_nDCG", "\u03b1_DCG", "\u03b1_nDCG", "ERR_IA", "nERR_IA", "P_IA", "StRecall"}
# Families of trec_eval that are not implemented.
OPEN_TREC_EVAL: set[str] = set()
# Measures of version 10 that pytrec_eval, based on version 9, lacks.
_VERSION_10 = {"dcg", "ideal_dcg", "rbp", "rbp_resid", "unj", "yaap"}


def refusal(text: str, dialect: str | None = None) -> str:
    with pytest.raises(UnknownName) as caught:
        parse_all(text, dialect)
    return str(caught.value)


# ---- ir_measures


def _spellings_of_ir_measures() -> list[Any]:
    """Return each registered name, alone and with each parameter value, as it is written."""
    others: dict[str, list[Any]] = {
        "cutoff": [1, 20],
        "rel": [2],
        "judged_only": [True, False],
        "recall": [0.1, 0.55],
        "gains": [{1: 2, 3: 7}],
        "dcg": ["log2"],
        "beta": [0.5],
        "p": [0.95],
        "relative": [True, False],
        "T": [2.0],
        "min_rel": [0],
        "max_rel": [3],
        "alpha": [0.25],
        "normalize": [True, False],
    }
    found = []
    for name, measure in ir_measures.measures.registry.items():
        wanted = {word: others[word][0] for word, info in measure.SUPPORTED_PARAMS.items() if info.required}
        whole = [measure(**wanted)]
        for word, info in measure.SUPPORTED_PARAMS.items():
            # BPM has a parameter that ir_measures does not write as it reads it.
            chosen = info.choices if isinstance(info.choices, list) else others[word]
            whole += [measure(**{**wanted, word: value}) for value in chosen]
        texts = dict.fromkeys(name + str(one).removeprefix(one.NAME) for one in whole)
        found += [pytest.param(name, text, id=ascii(text)) for text in texts]
    return found


IR_MEASURES = _spellings_of_ir_measures()


@pytest.mark.parametrize(("name", "text"), IR_MEASURES)
def test_a_name_of_ir_measures_is_read(name: str, text: str) -> None:
    if name == "NumQ":
        assert "number of queries" in refusal(text)
    elif name in CLASHES:
        assert f"{parse(text, 'ir_measures')} in ir_measures" in refusal(text)
    elif name in NEED_A_CUT and "@" not in text:
        assert "needs k" in refusal(text)
        assert "needs k" in refusal(text, "ir_measures")
    else:
        assert parse_all(text) == parse_all(text, "ir_measures")


def test_every_exception_of_ir_measures_is_a_name_of_it() -> None:
    assert len(IR_MEASURES) > 150
    assert set(ir_measures.measures.registry) >= CLASHES | NEED_A_CUT


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("INST(max_rel=3,min_rel=1)", "subtract the lowest grade"),
        ("NERR9(min_rel=-1,max_rel=3)@5", "subtract the lowest grade"),
        ("SDCG(max_rel=3,dcg='exp-log2')@5", "map the grades"),
    ],
)
def test_a_word_that_is_only_possible_with_one_value_says_why(text: str, why: str) -> None:
    assert why in refusal(text)
    assert why in refusal(text, "ir_measures")


@pytest.mark.parametrize(
    ("text", "ours"),
    {
        "nDCG(dcg='exp-log2')@10": "nDCG(gain=exp)@10",
        "nDCG(gains={1:2,3:7})@5": "nDCG(gain={1:2,3:7})@5",
        "P(rel=2,judged_only=True)@5": "P(judged_only=true,rel=2)@5",
        "SetF(beta=2)": "SetF(beta=2)",
        "IPrec@0.1": "IPrec@0.1",
        "ERR@20": "ERR(top=4)@20",
        "RBP(rel=1,p=0.95)@10": "RBP(p=0.95)@10",
        "NumRet(rel=2)": "NumRelRet(rel=2)",
        "NumRet": "NumRet",
        "SetP(relative=False)": "SetP",
        "RPrec": "Rprec",
        "BPref": "Bpref",
        "MAP(cutoff=10)": "AP@10",
        "SetP(relative=True)": "SetRelP",
        "INST(T=2.0,max_rel=3)": "INST(goal=2,top=3)",
        "INSQ(min_rel=0,max_rel=3)": "INSQ(top=3)",
        "BPM(T=3,min_rel=0,max_rel=2)@20": "BPM(goal=3,top=2)@20",
        "SDCG(dcg='log2',max_rel=3)@5": "SDCG(top=3)@5",
        "NERR11(T=2,max_rel=3)": "NERR11(goal=2,top=3)",
        "Compat(normalize=False)": "Compat(normalize=False)",
        "NRBP(beta=0.25)": "NRBP(p=0.25)",
        "MAP_IA": "AP_IA",
        "\u03b1_nDCG(alpha=0.25)@20": "alpha_nDCG(alpha=0.25)@20",
    }.items(),
)
def test_a_name_of_ir_measures_means_our_measure(text: str, ours: str) -> None:
    assert parse(text) == parse(text, "ir_measures") == parse(ours)


# ---- trec_eval


def test_every_family_of_trec_eval_is_read_or_has_a_reason() -> None:
    families = set(pytrec_eval.supported_measures) | _VERSION_10
    for members in pytrec_eval.supported_nicknames.values():
        families |= members
    assert len(families) > 50
    unread = set()
    for family in families:
        try:
            parse_all(family, "trec_eval")
        except UnknownName as error:
            if "is not supported" not in str(error):
                unread.add(family)
    assert unread == OPEN_TREC_EVAL


@pytest.mark.parametrize(
    ("text", "ours"),
    {
        "P.5,10": "P@5 P@10",
        "P_5": "P@5",
        "P.5": "P@5",
        "ndcg_cut.10": "nDCG@10",
        "ndcg_cut_10": "nDCG@10",
        "map_cut.10,20": "AP@10 AP@20",
        "recall.100": "R@100",
        "success.1,5": "Success@1 Success@5",
        "ndcg.1=3.5,2=9": "nDCG(gain={1:3.5,2:9})",
        "ndcg": "nDCG",
        "dcg": "DCG",
        "iprec_at_recall.0.1,.25": "IPrec@0.1 IPrec@0.25",
        "iprec_at_recall_0.10": "IPrec@0.1",
        "set_F.4": "SetF(beta=2)",
        "set_F": "SetF",
        "rbp.p=0.8": "RBP(p=0.8)",
        "G.1=3": "G(gain={1:3})",
        "dcg.1=2,2=9": "DCG(gain={1:2,2:9})",
        "utility.1,-1,0,0": "Utility",
        "utility.2,-0.5,-3,0": "Utility(hit=2,miss=-3,noise=-0.5)",
        "unj": "Unjudged@5 Unjudged@10 Unjudged@20",
        "yaap": "YAAP",
        "ndcg_cut": "nDCG@5 nDCG@10 nDCG@15 nDCG@20 nDCG@30 nDCG@100 nDCG@200 nDCG@500 nDCG@1000",
    }.items(),
)
def test_a_name_of_trec_eval_means_our_measures(text: str, ours: str) -> None:
    wanted = tuple(map(parse, ours.split()))
    assert parse_all(text) == parse_all(text, "trec_eval-9") == parse_all(text, "pytrec_eval")
    assert parse_all(text) == wanted


def test_a_bare_family_name_means_all_its_measures_only_in_trec_eval() -> None:
    assert "P needs k" in refusal("P")
    assert "Criterion needs name" in refusal("Criterion")
    assert [measure.k for measure in parse_all("P", "trec_eval")] == [5, 10, 15, 20, 30, 100, 200, 500, 1000]
    assert [measure.k for measure in parse_all("success", "trec_eval")] == [1, 5, 10]
    assert parse("rbp") == parse("RBP(p=0.8)")
    assert parse("rbp", "trec_eval-10") == parse("RBP(p=0.9)")
    assert parse("rbp_resid", "trec_eval-10") == parse("RBPres(p=0.9)")


def test_a_list_is_not_one_measure() -> None:
    with pytest.raises(UnknownName, match="a list of 2 measures"):
        parse("P.5,10")
    with pytest.raises(UnknownName, match="a curve of 11 values"):
        parse("iprec_at_recall")


@pytest.mark.parametrize("nickname", NICKNAMES)
def test_a_nickname_of_trec_eval_means_its_measures(nickname: str) -> None:
    of_version_9 = set(pytrec_eval.supported_nicknames[nickname]) - {"runid", "num_q", "relstring"}
    assert of_version_9 == set(NICKNAMES[nickname]) - _VERSION_10
    found = parse_all(nickname)
    for member in set(NICKNAMES[nickname]) - OPEN_TREC_EVAL:
        assert set(parse_all(member, "trec_eval")) <= set(found), member
    assert len(set(found)) == len(found)


# ---- the other tools, copied from their sources and pages

BY_HAND = {
    "ranx": {
        "hits@5": "NumRelRet@5",
        "hits": "NumRelRet",
        "hit_rate@5": "Success@5",
        "precision@5": "P@5",
        "precision@5-l2": "P(rel=2)@5",
        "precision": "SetP",
        "recall@100": "R@100",
        "recall": "SetR",
        "recall-l2": "SetR(rel=2)",
        "f1@5": "F1@5",
        "f1": "SetF",
        "r-precision": "Rprec",
        "r-precision-l2": "Rprec(rel=2)",
        "mrr": "RR",
        "mrr@10": "RR@10",
        "map": "AP",
        "map@10-l3": "AP(rel=3)@10",
        "dcg@10": "DCG@10",
        "dcg_burges": "DCG(gain=exp)",
        "ndcg@10": "nDCG@10",
        "ndcg": "nDCG",
        "ndcg_burges@10": "nDCG(gain=exp)@10",
        "bpref": "Bpref",
        "rbp.95": "RBP(p=0.95)",
        "rbp@8": "RBP(p=0.8)",
        "rbp.95-l2": "RBP(p=0.95,rel=2)",
    },
    "beir": {
        "NDCG@10": "nDCG@10",
        "MAP@100": "AP@100",
        "Recall@100": "R@100",
        "P@1": "P@1",
        "MRR@10": "RR@10",
        "Accuracy@5": "Success@5",
        "top_k_accuracy@5": "Success@5",
    },
    "mteb": {
        "ndcg_at_10": "nDCG@10",
        "map_at_10": "AP@10",
        "recall_at_100": "R@100",
        "precision_at_1": "P@1",
        "mrr_at_10": "RR@10",
        "hit_rate_at_5": "Success@5",
        "accuracy": "R@1",
        "Accuracy@5": "Success@5",
    },
    "sentence-transformers": {
        "cosine_ndcg@10": "nDCG@10",
        "dot_map@100": "AP(norm=min(k,R))@100",
        "cosine-Accuracy@1": "Success@1",
        "cosine-MRR@10": "RR@10",
        "dot-Recall@5": "R@5",
        "cos_sim-Precision@3": "P@3",
        "quora-dev_cosine_accuracy@10": "Success@10",
        "map@100": "AP(norm=min(k,R))@100",
        "map": "AP",
        "accuracy@1": "Success@1",
        "manhattan_mrr@10": "RR@10",
        "euclidean_recall@1": "R@1",
    },
    "torchmetrics": {
        "RetrievalMAP": "AP(norm=retrieved)",
        "RetrievalMAP(top_k=10)": "AP(norm=retrieved)@10",
        "RetrievalMRR(top_k=5)": "RR@5",
        "RetrievalPrecision(top_k=5)": "P@5",
        "RetrievalPrecision": "SetP",
        "RetrievalRecall(top_k=5)": "R@5",
        "RetrievalHitRate(top_k=5)": "Success@5",
        "RetrievalRPrecision": "Rprec",
        "RetrievalNormalizedDCG": "nDCG(ideal=retrieved)",
        "retrieval_normalized_dcg(top_k=5)": "nDCG(ideal=retrieved)@5",
    },
    "sklearn": {
        "ndcg_score": "nDCG(ideal=retrieved)",
        "ndcg_score(k=5)": "nDCG(ideal=retrieved)@5",
        "dcg_score": "DCG",
        "average_precision_score": "AP(norm=retrieved)",
        "top_k_accuracy_score(k=5)": "Success@5",
        "f1_score": "SetF",
        "fbeta_score(beta=2)": "SetF(beta=2)",
    },
    "llama-index": {
        "hit_rate@5": "Success@5",
        "mrr": "RR",
        "precision": "SetP",
        "recall": "SetR",
        "ap": "AP",
        "ndcg": "nDCG",
    },
    "haystack": {"DocumentMRREvaluator": "RR", "DocumentMAPEvaluator": "AP", "DocumentNDCGEvaluator": "nDCG"},
    "trectools": {"NDCG_10": "nDCG@10", "P_10": "P@10", "R_100": "R@100", "recip_rank": "RR"},
    "recbole": {"Hit@10": "Success@10", "NDCG@10": "nDCG@10", "MAP@10": "AP(norm=min(k,R))@10"},
    "rectools": {"HitRate@10": "Success@10", "NDCG@10": "nDCG@10", "F1Beta(beta=2)@5": "F2@5"},
}
_BY_HAND = [
    pytest.param(tool, text, ours, id=f"{tool}: {text}")
    for tool, rows in BY_HAND.items()
    for text, ours in rows.items()
]


@pytest.mark.parametrize(("tool", "text", "ours"), _BY_HAND)
def test_a_name_of_a_tool_means_our_measure(tool: str, text: str, ours: str) -> None:
    assert parse(text, dialect=tool) == parse(ours)


# Without the tool: an error, since tools differ or the cut-off is missing, or another meaning.
OTHERWISE = {
    ("ranx", "hits@5"),
    ("ranx", "hits"),
    ("ranx", "precision"),
    ("ranx", "recall"),
    ("ranx", "recall-l2"),
    ("ranx", "f1"),
    ("ranx", "rbp@8"),
    ("beir", "Accuracy@5"),
    ("mteb", "accuracy"),
    ("mteb", "Accuracy@5"),
    ("sentence-transformers", "map@100"),
    ("sentence-transformers", "accuracy@1"),
    ("torchmetrics", "RetrievalPrecision"),
    ("sklearn", "f1_score"),
    ("sklearn", "fbeta_score(beta=2)"),
    ("llama-index", "precision"),
    ("llama-index", "recall"),
    ("recbole", "MAP@10"),
}


def test_without_a_dialect_the_same_is_read_where_only_one_thing_can_be_meant() -> None:
    differing = set()
    for tool, rows in BY_HAND.items():
        for text, ours in rows.items():
            try:
                same = parse(text) == parse(ours)
            except UnknownName:
                same = False
            if not same:
                differing.add((tool, text))
    assert differing == OTHERWISE


@pytest.mark.parametrize(
    ("text", "ours"),
    {
        "MRR": "RR",
        "MAP": "AP",
        "F1@5": "F(beta=1)@5",
        "Hit@5": "Success@5",
        "p@5": "P@5",
        "Recall@5": "R@5",
        "success@1": "Success@1",
        "R-Precision": "Rprec",
        "Precision at 5": "P@5",
        "precision_at_5": "P@5",
        "top-5 accuracy": "Success@5",
        "Top 10 Accuracy": "Success@10",
        "top_5_accuracy": "Success@5",
        "top-3 recall": "R@3",
        "nDCG_10": "nDCG@10",
        "NDCG @ 10": "nDCG@10",
        "Hit Ratio@5": "Success@5",
        "mean average precision": "AP",
        "Mean Average Precision@10": "AP@10",
        "Normalized Discounted Cumulative Gain@10": "nDCG@10",
        "F1-score@5": "F1@5",
    }.items(),
)
def test_informal_names_are_parsed(text: str, ours: str) -> None:
    assert parse(text) == parse(ours)


# ---- conflicts, reasons, near misses


def test_a_clash_shows_what_each_tool_means() -> None:
    said = refusal("hits@5")
    assert "NumRelRet@5 in ranx" in said
    assert "Success@5 in everyday usage" in said
    assert 'dialect="ranx"' in said
    said = refusal("Accuracy@5")
    assert "PairAcc(among=retrieved)@5 in ir_measures" in said
    assert "Success@5 in beir" in said
    assert parse("Accuracy@5", "ir_measures") == parse("PairAcc(among=retrieved)@5")


@pytest.mark.parametrize("text", ["Hole@10", "hole@10", "hole_at_10", "Hole"])
def test_a_hole_of_beir_is_not_what_a_query_has_no_judgment_of(text: str) -> None:
    for dialect in (None, "beir", "mteb"):
        said = refusal(text, dialect)
        assert "judged for any other query" in said
        assert "Unjudged@10" in said


def test_no_name_of_rankgauge_is_ambiguous() -> None:
    for name in NAMES:
        for dialect in (None, *DIALECTS):
            try:
                parse_all(name, dialect)
            except UnknownName as error:
                assert "is ambiguous" not in str(error)  # noqa: PT017 - some need a cut-off


@pytest.mark.parametrize("tool", TOOLS)
def test_an_invalid_measure_is_refused_with_a_reason_and_a_fix(tool: str) -> None:
    for spelling in TOOLS[tool].spellings:
        if not spelling.means:
            said = refusal(spelling.name, None if tool == "people" else tool)
            assert f"is not supported: {spelling.why}" in said
            assert spelling.instead
            assert said.endswith(spelling.instead)


def test_every_spelling_means_an_existing_measure() -> None:
    names = {name for tool in TOOLS.values() for row in tool.spellings for name in (row.means, row.bare) if name}
    names |= {name for pair in FLAGS.values() for name in pair}
    assert {name.partition("(")[0].partition("@")[0] for name in names} <= DECLARED.keys()
    for nickname in NICKNAMES:
        assert parse_all(nickname)


@pytest.mark.parametrize("tool", TOOLS)
def test_every_spelling_of_a_tool_is_read_as_its_row_says_or_has_its_reason(tool: str) -> None:
    dialect = None if tool == "people" else tool
    for row in tool_names([tool]):
        text = re.sub(r"(?<=[@_=])k(?=\)?$)", "10", row.name).replace("(rel)", "(rel=1)")
        text, ours = text.replace("@recall", "@0.5"), row.means.replace("@recall", "@0.5")
        ours = ours.replace("@k", "@10")
        # Rejected names have a reason, lack a cut-off, or are shown with their other meanings.
        reasons = [f"{ours} in "] if ours else [row.why]
        reasons += ["needs k"] * (text == row.name)
        try:
            found = parse_all(text, dialect)
        except UnknownName as error:
            assert any(reason in str(error) for reason in reasons), row  # noqa: PT017
        else:
            assert found == parse_all(ours), row


def test_every_listed_name_is_parsed_or_has_a_reason() -> None:
    rows = list(tool_names())
    assert len(rows) > 150
    for row in rows:
        assert bool(row.means) or bool(row.why)
        if row.means:
            assert parse_all(row.means.replace("@k", "@10").replace("@recall", "@0.5"))


@pytest.mark.parametrize("text", ["P.x", "P.5,x", "ndcg_cut.10,x"])
def test_one_of_a_list_that_is_no_cut_off_is_refused(text: str) -> None:
    assert text.rpartition(",")[2] in refusal(text)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_our_own_names_mean_the_same_in_every_dialect(dialect: str) -> None:
    for bare in list_measures():
        measure = completed(bare)
        assert parse(str(measure), dialect=dialect) == measure


@pytest.mark.parametrize(
    ("text", "near"),
    {
        "ndgc@10": "nDCG@10",
        "preicsion@10": "P@10",
        "recal_10": "R@10",
        "ndcg10": "nDCG@10",
        "map.10": "AP@10",
        "suces@5": "Success@5",
        "bperf": "Bpref",
        "recip_rnak": "RR",
        "hit_raet@5": "Success@5",
        "ndcg_burgess@10": "nDCG(gain=exp)@10",
        "RetrievalNormalisedDCG": "nDCG(ideal=retrieved)",
    }.items(),
)
def test_a_near_miss_is_answered_with_the_name(text: str, near: str) -> None:
    said = refusal(text)
    assert f"did you mean {near}" in said


@pytest.mark.parametrize("text", ["xyz", "foo@10", "", "@10", "((", "cosine_", "P." * 99])
def test_an_unrecognizable_name_is_refused_with_the_syntax(text: str) -> None:
    assert "write Name@k" in refusal(text)


def test_an_unknown_dialect_names_the_known() -> None:
    said = refusal("P@5", "nist")
    assert all(name in said for name in DIALECTS)


_WORDS = st.sampled_from(
    [
        *NAMES,
        *TREC,
        *FAMILIES,
        "cosine_",
        "top-",
        "-l",
        "@",
        ".",
        ",",
        "=",
        "10",
        "0.5",
        "_at_",
        " at ",
        "(",
        ")",
        "rel",
        "nauc_",
        "\u03b1",
        "rbp",
        "\ud800",
        "\0",
        "9" * 400,
    ]
)


@given(st.lists(_WORDS, max_size=6).map("".join) | st.text(max_size=30), st.sampled_from([None, *DIALECTS]))
def test_any_text_is_parsed_or_refused_with_a_message(text: str, dialect: str | None) -> None:
    try:
        found = parse_all(text, dialect)
    except UnknownName as error:
        assert error.fix  # noqa: PT017 - some are read, some are not
    else:
        assert found
        for measure in found:
            assert parse(str(measure)) == measure


def test_a_text_that_is_too_long_is_no_spelling() -> None:
    assert translate("cosine_" * 100 + "ndcg@10") is None
    assert translate("a" * 401) is None


def test_a_weight_of_trec_eval_is_the_square_of_beta() -> None:
    assert parse("set_F.0.5").beta == pytest.approx(math.sqrt(0.5))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nDCG@10,RR, R@5", ["nDCG@10", "RR", "R@5"]),
        ("AP(norm=min(k,R),rel=2)@5,nDCG(gain={1:2,2:3})@3", ["AP(norm=min(k,R),rel=2)@5", "nDCG(gain={1:2,2:3})@3"]),
        ("P.5,10,map", ["P@5", "P@10", "AP"]),
        ("MRR@10,hit rate@5", ["RR@10", "Success@5"]),
        (",nDCG@10,,RR,", ["nDCG@10", "RR"]),
    ],
)
def test_names_may_be_separated_by_commas(text: str, parts: list[str]) -> None:
    assert parse_all(text) == tuple(map(parse, parts))
    with pytest.raises(UnknownName, match="a list of"):
        parse(text)


@pytest.mark.parametrize("text", ["nDCG@10,X", "AP(rel=2,RR", "," * 9000])
def test_a_list_with_an_invalid_part_is_refused(text: str) -> None:
    with pytest.raises(UnknownName):
        parse_all(text)
