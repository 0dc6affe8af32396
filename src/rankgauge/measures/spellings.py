"""Names of measures in other tools and in everyday usage.

The tables need no entries for names that differ from ours only in case and separators, or for
names in trec_eval, which the measures declare.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Spelling(NamedTuple):
    """Name of a measure in one tool."""

    name: str  # without the cut-off
    means: str = ""  # our measure, without the cut-off; empty if there is none
    bare: str = ""  # our measure for the name without a cut-off, if different
    why: str = ""  # why it is not a measure here, or when the numbers are equal
    instead: str = ""  # alternative to a name that is not a measure here
    cut: bool = True  # whether the tool writes a cut-off if our measure has one


class Tool(NamedTuple):
    """Names of measures in one tool."""

    name: str  # the dialect
    shown: str  # format of a name with its cut-off
    spellings: tuple[Spelling, ...]  # names that differ from ours


_JUDGE = "evaluate the judgments of each judge separately"
_ANSWERS = "it measures answers or needs a model, and cannot be computed from a run and judgments"
_OF_ANSWERS = "rankgauge answers evaluates answers; R@10 and nDCG@10 measure retrieval"
_CATALOGUE = "it depends on the number of documents in the collection, which run and judgments do not have"
_ITEMS = "it depends on the content of documents, which run and judgments do not have"
_LABELS = "it measures predicted numbers, not rankings"
_BY_RANK = "use a measure of rankings: AP, nDCG@10"
_ALL = "the values are equal if all relevant documents are passed to the tool, retrieved or not"
_RETRIEVED = "the values are equal if only the retrieved documents are passed to the tool"
_HOLE = "in that tool, a document judged for any other query does not count as a hole"
_NEAR_HOLE = "Unjudged@10 needs judgments for the query itself"
_BINARY = "the tool uses binary relevance: the values are equal for judgments with one grade"
_CONFIDENCE = "it measures how well scores predict the quality of queries, and has one value for all queries"
_CURVE = "it is a curve"
_OF_CURVE = "IPrec has eleven points of it, IPrecAvg and AP are single numbers"
_AREA = "it needs the scores of all documents, including those that were not retrieved"


def _why(why: str, instead: str, *names: str) -> tuple[Spelling, ...]:
    return tuple(Spelling(name, why=why, instead=instead) for name in names)


_TREC_EVAL = Tool(
    "trec_eval",
    "{name}_{k}",
    (
        Spelling(
            "rbp",
            "RBP(p=0.9)",
            cut=False,
            why="version 10 weights by grades, scaled by uninitialized numbers: compare only for grades 0 and 1",
        ),
        Spelling(
            "rbp_resid",
            "RBP(p=0.9,residual=true)",
            cut=False,
            why="version 10 returns 0 if all retrieved documents are judged",
        ),
        *_why("it is the name of the run", "it is the column header", "runid"),
        *_why("it is the number of queries", "it is printed below every table", "num_q"),
        *_why(
            "it is text (the grades of the top documents) and has no mean",
            "rankgauge diff --query and rankgauge diagnose show rankings",
            "relstring",
        ),
        *_why("it is a property of the judgments alone", "DCG divided by nDCG gives it", "ideal_dcg"),
        *_why(
            "it averages over several judges of a document",
            _JUDGE,
            "map_avgjg",
            "P_avgjg",
            "Rprec_mult_avgjg",
            "qrels_jg",
        ),
    ),
)
TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        _TREC_EVAL,
        _TREC_EVAL._replace(name="pytrec_eval"),
        Tool(
            "ir_measures",
            "{name}@{k}",
            (
                Spelling("NumRet(rel)", "NumRelRet"),
                Spelling("Accuracy", "PairAcc(among=retrieved)"),
                Spelling("MAP_IA", "AP_IA", cut=False),
                *_why("it is the number of queries", "it is printed below every table", "NumQ"),
            ),
        ),
        Tool(
            "ranx",
            "{name}@{k}",
            (
                Spelling("hits", "NumRelRet"),
                Spelling("hit_rate", "Success"),
                Spelling("precision", "P", "SetP"),
                Spelling("recall", "R", "SetR"),
                Spelling("f1", "F(beta=1)", "SetF"),
                Spelling("r-precision", "Rprec"),
                Spelling("mrr", "RR"),
                Spelling("map", "AP"),
                Spelling("dcg", "DCG"),
                Spelling("dcg_burges", "DCG(gain=exp)"),
                Spelling("ndcg", "nDCG"),
                Spelling("ndcg_burges", "nDCG(gain=exp)"),
                Spelling("bpref", "Bpref", why="the tool has no value if no document is judged not relevant"),
                Spelling(
                    "rbp.95",
                    "RBP(p=0.95)",
                    cut=False,
                    why="the tool weights by grades: the values are equal for one grade",
                ),
            ),
        ),
        Tool(
            "beir",
            "{name}@{k}",
            (
                Spelling("NDCG", "nDCG"),
                Spelling("MAP", "AP"),
                Spelling("Recall", "R"),
                Spelling("P", "P"),
                Spelling("MRR", "RR"),
                Spelling("mrr_cut", "RR"),
                Spelling("R_cap", "RelP"),
                Spelling("recall_cap", "RelP"),
                *_why(_HOLE, _NEAR_HOLE, "Hole"),
                Spelling("Accuracy", "Success"),
                Spelling("top_k_accuracy", "Success"),
                Spelling("top_k_acc", "Success"),
                Spelling("acc", "Success"),
            ),
        ),
        Tool(
            "mteb",
            "{name}_at_{k}",
            (
                Spelling("ndcg", "nDCG"),
                Spelling("map", "AP"),
                Spelling("recall", "R"),
                Spelling("precision", "P"),
                Spelling("mrr", "RR"),
                Spelling("hit_rate", "Success"),
                Spelling("R_cap", "RelP"),
                *_why(_HOLE, _NEAR_HOLE, "Hole"),
                Spelling("accuracy", "Success", "R@1", why="without a number it is Recall@1"),
                *_why("it is the main measure of the task, usually nDCG@10", "name that measure", "main_score"),
                *_why(_CONFIDENCE, "compare the values query by query: rankgauge compare", "nauc"),
                *_why(
                    "it compares two sets of queries",
                    "rankgauge diff compares two runs, query by query",
                    "p-MRR",
                    "paired_accuracy",
                    "robustness",
                ),
            ),
        ),
        Tool(
            "sentence-transformers",
            "cosine_{name}@{k}",
            (
                Spelling("accuracy", "Success"),
                Spelling("precision", "P"),
                Spelling("recall", "R"),
                Spelling("mrr", "RR"),
                Spelling("ndcg", "nDCG", why=_BINARY),
                Spelling("map", "AP(norm=min(k,R))", "AP"),
            ),
        ),
        Tool(
            "torchmetrics",
            "{name}(top_k={k})",
            (
                Spelling("RetrievalMAP", "AP(norm=retrieved)"),
                Spelling("RetrievalMRR", "RR"),
                Spelling("RetrievalPrecision", "P", "SetP"),
                Spelling("RetrievalRecall", "R", "SetR", why=_ALL),
                Spelling("RetrievalHitRate", "Success"),
                Spelling("RetrievalRPrecision", "Rprec", why=_ALL),
                Spelling("RetrievalNormalizedDCG", "nDCG(ideal=retrieved)", why=_RETRIEVED),
                *_why(_CATALOGUE, "P@10 is similar, for retrieved documents", "RetrievalFallOut"),
                *_why(_AREA, _BY_RANK, "RetrievalAUROC"),
                *_why(_CURVE, _OF_CURVE, "RetrievalPrecisionRecallCurve", "RetrievalRecallAtFixedPrecision"),
                Spelling("retrieval_average_precision", "AP(norm=retrieved)"),
                Spelling("retrieval_reciprocal_rank", "RR"),
                Spelling("retrieval_precision", "P", "SetP"),
                Spelling("retrieval_recall", "R", "SetR", why=_ALL),
                Spelling("retrieval_r_precision", "Rprec", why=_ALL),
                Spelling("retrieval_normalized_dcg", "nDCG(ideal=retrieved)", why=_RETRIEVED),
                *_why(_AREA, _BY_RANK, "retrieval_auroc"),
                *_why(_CURVE, _OF_CURVE, "retrieval_precision_recall_curve", "retrieval_recall_at_fixed_precision"),
            ),
        ),
        Tool(
            "sklearn",
            "{name}(k={k})",
            (
                Spelling("ndcg_score", "nDCG(ideal=retrieved)", why=_RETRIEVED),
                Spelling("dcg_score", "DCG"),
                Spelling("average_precision_score", "AP(norm=retrieved)", why=_RETRIEVED),
                Spelling("label_ranking_average_precision_score", "AP(norm=retrieved)", why=_RETRIEVED),
                Spelling("top_k_accuracy_score", "Success"),
                Spelling("precision_score", "P", "SetP"),
                Spelling("recall_score", "R", "SetR"),
                Spelling("f1_score", "F(beta=1)", "SetF"),
                Spelling("fbeta_score", "F", "SetF"),
                *_why(
                    _CATALOGUE,
                    _BY_RANK,
                    "accuracy_score",
                    "balanced_accuracy_score",
                    "matthews_corrcoef",
                    "coverage_error",
                    "label_ranking_loss",
                ),
                *_why(_AREA, _BY_RANK, "roc_auc_score"),
                *_why(_CURVE, _OF_CURVE, "precision_recall_curve", "roc_curve", "det_curve"),
            ),
        ),
        Tool(
            "llama-index",
            "{name}",
            (
                Spelling("hit_rate", "Success"),
                Spelling("mrr", "RR"),
                Spelling("precision", "P", "SetP"),
                Spelling("recall", "R", "SetR"),
                Spelling("ap", "AP"),
                Spelling("ndcg", "nDCG", why=_BINARY),
                *_why(_ANSWERS, _OF_ANSWERS, "cohere_rerank_relevancy"),
            ),
        ),
        Tool(
            "haystack",
            "{name}",
            (
                Spelling("DocumentMAPEvaluator", "AP"),
                Spelling("DocumentMRREvaluator", "RR"),
                Spelling("DocumentNDCGEvaluator", "nDCG"),
                *_why(
                    "it is a hit rate (mode single_hit, its default) or recall (multi_hit)",
                    "write Success@10, or SetR for all that was retrieved",
                    "DocumentRecallEvaluator",
                ),
                *_why(
                    _ANSWERS,
                    _OF_ANSWERS,
                    "AnswerExactMatchEvaluator",
                    "SASEvaluator",
                    "FaithfulnessEvaluator",
                    "ContextRelevanceEvaluator",
                    "LLMEvaluator",
                ),
            ),
        ),
        Tool(
            "trectools",
            "{name}_{k}",
            (
                Spelling("NDCG", "nDCG"),
                Spelling("UNJ", "Unjudged"),
                Spelling("unjudged", "Unjudged"),
                Spelling("geometric_map", "GMAP"),
                *_why(
                    "it combines relevance with a second kind of judgments",
                    "nDCG(gain={1:1,2:5}) weights grades",
                    "urbp",
                    "ubpref",
                    "alpha_urbp",
                ),
            ),
        ),
        Tool(
            "recbole",
            "{name}@{k}",
            (
                Spelling("Hit", "Success"),
                Spelling("MAP", "AP(norm=min(k,R))", "AP"),
                Spelling("NDCG", "nDCG", why=_BINARY),
                *_why(_AREA, _BY_RANK, "GAUC"),
                *_why(_LABELS, _BY_RANK, "MAE", "RMSE", "LogLoss"),
                *_why(
                    _ITEMS,
                    _BY_RANK,
                    "ItemCoverage",
                    "AveragePopularity",
                    "ShannonEntropy",
                    "GiniIndex",
                    "TailPercentage",
                ),
            ),
        ),
        Tool(
            "rectools",
            "{name}@{k}",
            (
                Spelling("HitRate", "Success"),
                Spelling("F1Beta", "F"),
                *_why(_CATALOGUE, _BY_RANK, "MCC"),
                *_why(_AREA, _BY_RANK, "PartialAUC", "PAP"),
                *_why(
                    _ITEMS,
                    _BY_RANK,
                    "MeanInvUserFreq",
                    "IntraListDiversity",
                    "AvgRecPopularity",
                    "Serendipity",
                    "CatalogCoverage",
                    "Completeness",
                    "Intersection",
                ),
            ),
        ),
        Tool(
            "people",
            "{name}@{k}",
            (
                Spelling("hits", "Success"),
                Spelling("accuracy", "Success"),
                Spelling("top-k accuracy", "Success"),
                Spelling("top-k hit rate", "Success"),
                Spelling("top-k precision", "P"),
                Spelling("top-k recall", "R"),
                Spelling("hit ratio", "Success"),
                Spelling("success rate", "Success"),
                Spelling("mean average precision", "AP"),
                Spelling("mean precision", "P"),
                Spelling("mean recall", "R"),
                Spelling("mean nDCG", "nDCG"),
                Spelling("geometric mean average precision", "GMAP"),
                Spelling("mean R-precision", "Rprec"),
                Spelling("discounted cumulative gain", "DCG"),
                Spelling("normalized discounted cumulative gain", "nDCG"),
                Spelling("normalised discounted cumulative gain", "nDCG"),
                Spelling("normalized DCG", "nDCG"),
                Spelling("normalised DCG", "nDCG"),
                Spelling("F1-score", "F(beta=1)"),
                Spelling("F1-measure", "F(beta=1)"),
                Spelling("F-score", "F"),
                Spelling("F-beta", "F"),
                Spelling("interpolated precision", "IPrec"),
                Spelling("eleven-point average precision", "IPrecAvg"),
                Spelling("binary preference", "Bpref"),
                Spelling("inferred average precision", "infAP"),
                Spelling("capped recall", "RelP"),
                Spelling("relative precision", "RelP"),
                Spelling("unjudged", "Unjudged"),
                Spelling("context relevancy", "ContextRelevance"),
                Spelling("answer relevancy", "AnswerRelevance"),
                Spelling("groundedness", "Faithfulness"),
                Spelling("claim recall", "ContextRecall"),
                Spelling("ROUGE", "RougeL"),
                *_why(_ANSWERS, _OF_ANSWERS, "BLEU", "BERTScore", "perplexity"),
                *_why(
                    _CATALOGUE,
                    "P@10 is similar, for retrieved documents",
                    "fall-out",
                    "specificity",
                    "false positive rate",
                ),
                *_why(_AREA, _BY_RANK, "AUC", "AUROC", "ROC AUC"),
                *_why(_CURVE, _OF_CURVE, "precision-recall curve", "PR AUC"),
                *_why(_ITEMS, _BY_RANK, "coverage", "novelty", "serendipity", "diversity", "popularity"),
                *_why(
                    "it compares two runs, and needs no judgments",
                    "rankgauge.rbo compares two runs",
                    "RBO",
                    "rank-biased overlap",
                    "overlap",
                ),
                *_why(
                    "it compares two orders",
                    "rankgauge.reliability compares orders of runs",
                    "Kendall tau",
                    "Spearman",
                    "rank correlation",
                ),
                *_why("it measures time", "rankgauge bench measures it", "latency", "throughput", "QPS"),
            ),
        ),
    )
}

_CUTS = "5,10,15,20,30,100,200,500,1000"
# Default cut-offs of trec_eval for the name of a family.
FAMILIES: Mapping[str, str] = {
    "P": _CUTS,
    "recall": _CUTS,
    "ndcg_cut": _CUTS,
    "map_cut": _CUTS,
    "relative_P": _CUTS,
    "success": "1,5,10",
    "unj": "5,10,20",
    "Rprec_mult": "0.20,0.40,0.60,0.80,1.00,1.20,1.40,1.60,1.80,2.00",
    "iprec_at_recall": "0.00,0.10,0.20,0.30,0.40,0.50,0.60,0.70,0.80,0.90,1.00",
}
# Named sets of measures in trec_eval, without entries that are not measures.
NICKNAMES: Mapping[str, tuple[str, ...]] = {
    "official": (
        "num_ret",
        "num_rel",
        "num_rel_ret",
        "map",
        "gm_map",
        "Rprec",
        "bpref",
        "recip_rank",
        "iprec_at_recall",
        "P",
    ),
    "set": (
        "num_ret",
        "num_rel",
        "num_rel_ret",
        "utility",
        "set_P",
        "set_recall",
        "set_relative_P",
        "set_map",
        "set_F",
    ),
    "all_trec": (
        "num_ret",
        "num_rel",
        "num_rel_ret",
        "map",
        "gm_map",
        "Rprec",
        "bpref",
        "recip_rank",
        "iprec_at_recall",
        "P",
        "recall",
        "infAP",
        "gm_bpref",
        "utility",
        "11pt_avg",
        "dcg",
        "ndcg",
        "relative_P",
        "Rprec_mult",
        "success",
        "map_cut",
        "ndcg_cut",
        "ndcg_rel",
        "Rndcg",
        "binG",
        "G",
        "set_P",
        "set_recall",
        "set_relative_P",
        "set_map",
        "set_F",
        "num_nonrel_judged_ret",
    ),
}
# Boolean parameters that select another measure: its names for false and for true.
FLAGS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("setp", "relative"): ("SetP", "SetRelP"),
    ("setrelp", "relative"): ("SetP", "SetRelP"),
}


class Implied(NamedTuple):
    """Parameter of another tool for which only one value is supported."""

    value: str
    why: str  # why other values are not supported
    instead: str  # alternative to other values


_GAINS = {"inst", "insq", "bpm", "sdcg", "nerr8", "nerr9", "nerr10", "nerr11"}
IMPLIED: Mapping[tuple[str, str], Implied] = {
    ("sdcg", "dcg"): Implied(
        "log2", "gains are grades divided by the top grade", "map the grades of the judgments to the intended gains"
    ),
    **dict.fromkeys(
        ((key, "min_rel") for key in sorted(_GAINS)),
        Implied(
            "0",
            "a gain of 0 is a grade of 0 here",
            "subtract the lowest grade from the grades of the judgments, and from top",
        ),
    ),
}
