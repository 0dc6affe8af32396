"""Seeded inputs: the same on every machine."""

from __future__ import annotations

import random

MEASURES = (
    "nDCG@10", "nDCG@100", "AP", "RR", "P@1", "P@3", "P@5", "P@10", "P@20", "R@1", "R@3", "R@5",
    "R@10", "R@20", "R@100", "Success@1", "Success@5", "Success@10",
)  # fmt: skip
TREC_MEASURES = {
    "ndcg_cut_10,100", "map", "recip_rank", "P_1,3,5,10,20", "recall_1,3,5,10,20,100",
    "success_1,5,10",
}  # fmt: skip

Judgments = dict[str, dict[str, int]]
Rankings = dict[str, dict[str, float]]


def made(queries: int, docs: int, judged: int) -> tuple[Judgments, Rankings]:
    """Judgments and a run; half of the judged documents are retrieved, 1 % of the scores tie."""
    rng = random.Random(queries * docs + judged)  # noqa: S311 - data, not secrets
    qrels: Judgments = {}
    run: Rankings = {}
    for query in range(queries):
        ids = rng.sample(range(10_000_000), docs + judged)
        scores = sorted((round(rng.uniform(0, 30), 6) for _ in range(docs)), reverse=True)
        for place in range(1, docs):
            if rng.random() < 0.01:
                scores[place] = scores[place - 1]
        run[f"q{query}"] = {f"d{doc}": score for doc, score in zip(ids[:docs], scores, strict=True)}
        pool = rng.sample(ids[:docs], judged // 2) + ids[docs : docs + judged - judged // 2]
        qrels[f"q{query}"] = {f"d{doc}": rng.randint(0, 3) for doc in pool}
    return qrels, run
