"""Order measures compared with ir_measures and with the area under the ROC curve."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from peers import ir_measure
from scipy import stats
from strategies import Batch, batch, joined, values

from rankgauge import evaluate, parse

_DEPTH = 40


@pytest.fixture(scope="module")
def made() -> Batch:
    """Rankings of one length without ties; some judged documents are not retrieved."""
    found = batch(11, queries=300, grades=(-1, 0, 0, 1, 2, 3), missing=False)
    run = {
        query: {doc: float(1000 - place) for place, doc in enumerate([*found.run[query]][:_DEPTH])}
        for query in found.qrels
    }
    for query, scores in run.items():
        scores.update({f"{query}-{n}": 900.0 - n for n in range(_DEPTH - len(scores))})
    qrels = {q: {doc: int(grade) for doc, grade in g.items()} for q, g in found.qrels.items()}
    return Batch(qrels, run)


def _theirs(provider: str, name: str, made: Batch) -> dict[str, float]:
    asked = ir_measures.providers.registry[provider]
    found = asked.iter_calc([ir_measure(name)], made.qrels, made.run)
    return {metric.query_id: metric.value for metric in found}


@pytest.mark.parametrize("p", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("normalize", [True, False])
def test_compat_agrees_with_ir_measures_at_its_depth(p: float, *, normalize: bool, made: Batch) -> None:
    """Named exception: its depth is the longer of ranking and ideal, so rankings have one length.

    Not tested: with negative scores, it ranks documents that were not retrieved first.
    """
    theirs = _theirs("compat", f"Compat(p={p},normalize={normalize})", made)
    measure = parse(f"Compat(p={p},normalize={normalize})@{_DEPTH}")
    found = joined(made.qrels, made.run)
    ours = np.nan_to_num(values(found, [measure])[:, 0])
    for query, value in zip(found.qrels.query_ids, ours.tolist(), strict=True):
        assert value == pytest.approx(theirs[query], abs=1e-12), query
    assert len(theirs) == len(made.qrels) == 300


def test_compat_does_not_change_with_scores_below_0(made: Batch) -> None:
    lower = {q: {doc: s - 1e6 for doc, s in scores.items()} for q, scores in made.run.items()}
    one, other = (evaluate(made.qrels, run, "Compat").per_query for run in (made.run, lower))
    assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.parametrize("at", ["", "@5", "@40"])
def test_pairs_of_what_was_retrieved_are_the_accuracy_of_ir_measures(at: str, made: Batch) -> None:
    """Named exception: if all documents considered are relevant, it fails with a division by 0."""
    name = f"PairAcc(among=retrieved){at}"
    ours = evaluate(made.qrels, made.run, name).per_query[:, 0]
    known = {q: v for q, v in zip(made.qrels, ours.tolist(), strict=True) if not np.isnan(v)}
    kept = Batch({q: made.qrels[q] for q in known}, {q: made.run[q] for q in known})
    assert _theirs("accuracy", f"Accuracy{at}", kept) == pytest.approx(known, abs=1e-12)
    assert len(known) > 100


def test_with_all_judged_retrieved_pairs_are_the_area_under_the_roc_curve() -> None:
    grades = {"a": 1, "b": 0, "c": 1, "d": 0, "e": 0, "f": 1}
    scores = {"a": 0.9, "b": 0.8, "x": 0.75, "c": 0.7, "d": 0.3, "e": 0.2, "f": 0.1}
    good, bad = ([scores[doc] for doc in grades if grades[doc] == level] for level in (1, 0))
    area = stats.mannwhitneyu(good, bad).statistic / (len(good) * len(bad))
    assert evaluate({"q": grades}, {"q": scores}, "PairAcc").per_query[0, 0] == area


def test_a_compat_over_more_than_a_million_ranks_is_refused() -> None:
    with pytest.raises(ValueError, match="sums over 1,000,001 ranks"):
        evaluate({"q": {"d": 1}}, {"q": ["d"]}, "Compat@1000001")
