"""What people type to read a value of a result: it works, or the message says what does."""

import pytest

import rankgauge
from rankgauge import nDCG

_FOLDER = rankgauge.sample_path("rankgauge.toml").parent
_QRELS, _RUNS = _FOLDER / "qrels.txt", [_FOLDER / "runs" / "bm25.run", _FOLDER / "runs" / "keyword.run"]


@pytest.fixture(scope="module")
def names():
    return {
        "ev": rankgauge.evaluate(_QRELS, _RUNS[0], "RR,AP,nDCG@10"),
        "comparison": rankgauge.compare(_QRELS, _RUNS, "RR,nDCG@10"),
        "diagnosis": rankgauge.diagnose(_QRELS, _RUNS[0]),
        "nDCG": nDCG,
    }


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        ("ev['RR']", "ev.mean()['RR']"),
        ("ev['map']", "ev.mean()['AP']"),
        ("ev['ndcg_cut_10']", "ev.mean()['nDCG@10']"),
        ("ev[nDCG @ 10]", "ev.mean()['nDCG@10']"),
    ],
)
def test_a_mean_is_read_by_any_name_of_its_measure(typed, same, names):
    assert eval(typed, names) == eval(same, names)


@pytest.mark.parametrize(
    ("typed", "error", "fix"),
    [
        ("ev['nDCG']", rankgauge.InputError, "evaluated: nDCG@10"),
        ("ev.mean('RR')", rankgauge.InputError, "evaluation['RR'] is a mean"),
        ("ev.value('RR')", rankgauge.InputError, "evaluation['RR'] is a mean"),
        ("ev['P@5']", rankgauge.InputError, "evaluated: RR, AP, nDCG@10"),
        ("ev['RR', 'q01']", rankgauge.InputError, "evaluation.value('q01', 'RR')"),
        ("ev['q01']['RR']", rankgauge.InputError, "evaluation.value('q01', 'RR')"),
        ("ev.value('RR', 'q01')", rankgauge.InputError, "evaluation.value('q01', 'RR')"),
        ("dict(ev)", rankgauge.InputError, "evaluation.mean() a dict"),
        ("list(ev)", rankgauge.InputError, "evaluation.mean() a dict"),
        ("ev.nDCG", AttributeError, "evaluation['nDCG@10'] is a mean"),
        ("ev.mrr", AttributeError, "evaluation['RR'] is a mean"),
        ("ev.scores", AttributeError, "evaluation.to_frame() has all values"),
        ("ev.to_dataframe()", AttributeError, "evaluation.to_frame() has all values"),
        ("comparison['RR']", TypeError, "comparison.means()['keyword']['RR'] is a mean"),
        ("comparison['keyword']", TypeError, "comparison.difference('keyword', 'RR')"),
        ("comparison.p", AttributeError, "comparison.difference('keyword', 'RR') has difference, low, high, p,"),
        ("comparison.pvalue", AttributeError, "comparison.difference('keyword', 'RR') has difference, low, high, p,"),
        ("comparison.mean('RR')", AttributeError, "comparison.means()['keyword']['RR'] is a mean"),
        ("diagnosis.causes", AttributeError, "did you mean first_causes? to_frame() and to_dict() have all values"),
    ],
)
def test_the_message_says_how_a_value_is_read(typed, error, fix, names):
    with pytest.raises(error) as raised:
        eval(typed, names)
    assert fix in str(raised.value).partition("\nfix: ")[2]


def test_the_ways_that_the_messages_name_work(names):
    evaluation, comparison = names["ev"], names["comparison"]
    assert 0 <= evaluation.value("q01", "RR") <= 1
    assert comparison.means()["keyword"]["RR"] == comparison.difference("keyword", "RR").mean
    assert not hasattr(evaluation, "_private")
