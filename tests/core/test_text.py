"""Numbers in messages."""

import random
from decimal import ROUND_HALF_EVEN, Decimal

import pytest

import rankgauge
from rankgauge.core.text import Ratio, shortened


@pytest.mark.parametrize(("form", "digits", "scale"), [(".3f", 3, 1), (".0%", 0, 100), (".1%", 1, 100)])
def test_only_exact_limits_print_as_limits(form, digits, scale):
    rng = random.Random(16)
    near = [limit + sign * 10.0**-power for limit in (-1, 0, 1) for sign in (-1, 1) for power in range(1, 12)]
    for value in [-1.0, 0.0, 1.0, *near, *(rng.uniform(-1, 1) for _ in range(2_000))]:
        shown = f"{Ratio(value):{form}}"
        printed = Decimal(shown.strip("<>%"))
        exact = Decimal(value) * scale
        nearest = exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)
        if abs(nearest) in {0, scale} and nearest != exact:
            assert shown[0] in "<>"
            assert (exact < printed) if shown[0] == "<" else (exact > printed)
            assert abs(printed - exact) < Decimal(1).scaleb(-digits)
            assert printed not in {-scale, 0, scale}
        else:
            assert shown[0] not in "<>"
            assert printed == nearest


@pytest.mark.parametrize(("value", "shown"), [(1 - 1e-15, "1.000"), (0.1 + 0.2 - 0.3, "0.000"), (float("nan"), "nan")])
def test_rounding_errors_of_sums_are_exact(value, shown):
    assert f"{Ratio(value):.3f}" == shown


def test_long_ids_are_shortened_in_every_message(tmp_path):
    long = "d" * 1_000_000
    path = tmp_path / "long.run"
    path.write_text(f"{long} Q0 {long} 1 2.0 t\n{long} Q0 {long} 2 1.0 t\nq1 Q0 d1 1 {long} t\n")
    qrels = {"q1": {"d1": 1}, long: {"d2": 1}}
    checked = rankgauge.check(qrels, path)
    assert checked.findings
    for one in checked.findings:
        assert max(map(len, (one.message, one.effect, one.fix))) <= 1505
    assert len(str(checked)) < 20_000
    with pytest.raises(rankgauge.RankgaugeError) as caught:
        rankgauge.evaluate(qrels, path)
    assert len(str(caught.value)) < 4_000
    run = {"q": {"d1": 1.0}, f"{long}2": {"d1": 1.0}}
    notes = rankgauge.evaluate({"q": {"d1": 1}}, run).notes
    assert max(map(len, notes)) < 2_000


def test_only_long_words_and_texts_are_shortened():
    word = "d" * 300
    assert shortened(word) == word
    assert shortened(f"{word}d") == "d" * 260 + " ... " + "d" * 40
    assert shortened("x " * 700) == "x " * 700
    assert len(shortened("x " * 800)) == 1505
