"""The front agrees with its definition, point by point."""

import math

import pytest
from hypothesis import given, strategies as st

from rankgauge.benchmark.pareto import ParetoPoint, pareto_front, plot_pareto
from rankgauge.errors import InputError

_values = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, math.nan])
points = st.lists(st.tuples(_values, _values), max_size=12).map(
    lambda rows: [ParetoPoint(f"p{n}", *row) for n, row in enumerate(rows)]
)


@given(points=points, lower=st.booleans())
def test_the_front_has_all_undominated_runs(points, lower):
    sign = -1 if lower else 1
    known = [p for p in points if p.quality == p.quality and p.latency == p.latency]

    def dominated(p):
        return any(
            sign * o.quality >= sign * p.quality
            and o.latency <= p.latency
            and (o.quality != p.quality or o.latency != p.latency)
            for o in known
        )

    front = pareto_front(points, lower=lower)
    assert {p.name for p in front} == {p.name for p in known if not dominated(p)}
    assert [p.latency for p in front] == sorted(p.latency for p in front)


def test_it_is_drawn_with_the_front_joined():
    points = [ParetoPoint("a", 0.5, 0.001), ParetoPoint("b", 0.7, 0.1), ParetoPoint("c", 0.6, 0.2)]
    plot = plot_pareto(points, "nDCG@10")
    (panel,) = plot.panels
    assert [series.name for series in panel.series] == ["on the front", "others"]
    assert panel.series[0].x == (1.0, 100.0)
    assert panel.log
    assert "a: 0.500 in 1 ms; b: 0.700 in 100 ms" in plot.alt
    pytest.importorskip("matplotlib")
    svg = plot.svg()
    assert all(f">{name}<" in svg for name in ("a", "b", "c", "others"))


def test_without_latencies_there_is_nothing_to_draw():
    with pytest.raises(InputError, match="a quality and a latency"):
        plot_pareto([ParetoPoint("a", 0.5, math.nan)], "nDCG@10")
