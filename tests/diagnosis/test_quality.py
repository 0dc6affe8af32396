"""Quality bands of means, and their bounds."""

import math

import pytest

from rankgauge import InputError, UnknownName, parse
from rankgauge.diagnosis import Bands


def level(name, mean, given=None, **words):
    found = Bands.of(given, **words)
    return next(band for band in found if str(band.measure) == name).level(mean)


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("P@5", (0.30, 0.50, 0.70)),
        ("R@5", (0.40, 0.60, 0.80)),
        ("Success@5", (0.60, 0.80, 0.90)),
        ("RR", (0.40, 0.60, 0.80)),
        ("nDCG@5", (0.40, 0.60, 0.80)),
    ],
)
def test_lower_bounds_are_inclusive(name, bounds):
    for bound, above, below in zip(
        bounds, ("Acceptable", "Good", "Excellent"), ("Poor", "Acceptable", "Good"), strict=True
    ):
        assert level(name, bound) == above
        assert level(name, bound - 0.0001) == below
    assert level(name, 0.0) == "Poor"
    assert level(name, 1.0) == "Excellent"


def test_a_mean_that_is_a_bound_but_for_rounding_has_reached_it():
    below = math.nextafter(0.7, 0)
    assert below < 0.7
    assert level("P@5", below) == "Excellent"


def test_an_undefined_mean_has_no_band():
    assert level("RR", math.nan) is None


def test_the_defaults_follow_the_cut_off_and_the_relevance_level():
    names = [str(band.measure) for band in Bands.of(k=3, rel=2)]
    assert names == ["P(rel=2)@3", "R(rel=2)@3", "Success(rel=2)@3", "RR(rel=2)", "nDCG@3"]


def test_given_bands_replace_or_extend_the_defaults(tmp_path):
    given = {"P": [0.1, 0.2, 0.3], "AP": [0.2, 0.3, 0.4]}
    assert level("P@5", 0.2, given) == "Good"
    assert level("R@5", 0.2, given) == "Poor"
    assert level("AP", 0.4, given) == "Excellent"
    assert level("P@7", 0.2, Bands.of(given, k=7)) == "Good"
    path = tmp_path / "rankgauge.toml"
    path.write_text('[bands]\nP = [0.1, 0.2, 0.3]\n"AP" = [0.2, 0.3, 0.4]\n')
    assert Bands.of(path) == Bands.of(str(path)) == Bands.of(given)
    assert parse("AP") in Bands.of(given).measures


@pytest.mark.parametrize(
    "values",
    [
        [0.5, 0.3, 0.7],
        [0.3, 0.3, 0.7],
        [0.1, 0.2],
        0.5,
        ["a", "b", "c"],
        [0.1, 0.2, math.nan],
        [0.1, 0.2, math.inf],
        None,
    ],
)
def test_bounds_that_do_not_increase_are_refused_with_their_position(values):
    with pytest.raises(InputError, match="bands, P: got"):
        Bands.of({"P": values})


def test_measures_without_bands_are_refused():
    with pytest.raises(UnknownName, match="did you mean"):
        Bands.of({"nDGC@5": [0.1, 0.2, 0.3]})
    with pytest.raises(UnknownName, match="not better when higher"):
        Bands.of({"FirstRel": [0.1, 0.2, 0.3]})


def test_bands_of_a_project_file_are_refused_with_their_line(tmp_path):
    path = tmp_path / "rankgauge.toml"
    for text, message in (
        ("[bands]\nP = [0.3, 0.2, 0.5]", "line 2, bands.P: got"),
        ("k = 5\nbands = 3", "line 2, bands: got 3"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            Bands.of(path)
    path.write_text("k = 5")
    assert Bands.of(path) == Bands.of()
    with pytest.raises(InputError, match="bands: got 3 for the bands"):
        Bands.of(3)
