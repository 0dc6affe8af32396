"""Judgments with labels survive writing and reading."""

import pytest
from hypothesis import given, strategies as st

from rankgauge.data import PreferenceQrels, SampledQrels, SubtopicQrels
from rankgauge.errors import InputError, UnknownName

NAMES = st.text(st.characters(exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=5).filter(
    lambda name: not name.startswith("#")
)
SPACED = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=5)


def nested(names, *levels):
    found = st.dictionaries(names, st.sampled_from([0.0, 1.0, 2.0, 2.5]), min_size=1, max_size=3)
    for _ in levels:
        found = st.dictionaries(names, found, min_size=1, max_size=3)
    return found


@given(
    data=st.data(),
    form=st.sampled_from(["trec", "csv", "tsv", "json", "jsonl"]),
    kind=st.sampled_from([PreferenceQrels, SampledQrels]),
)
def test_files_come_back_as_they_were(data, form, kind, tmp_path_factory):
    names = NAMES if form == "trec" else SPACED
    levels = 2 if kind is PreferenceQrels else 1
    rows = data.draw(nested(names, *range(levels + 1)))
    if kind is SampledQrels:
        rows = {
            q: {s: {f"{s}{d}": g for d, g in own.items()} for s, own in strata.items()} for q, strata in rows.items()
        }
    try:
        held = kind.of(rows)
    except InputError:
        return  # a contradictory group, or a document in two strata
    path = tmp_path_factory.mktemp("special") / f"judged.{form}"
    held.write(path, form)
    again = kind.read(path, form)
    assert again == held
    again.write(path, form)
    assert kind.read(path, form) == held


def test_subtopics_are_written_too(tmp_path):
    held = SubtopicQrels.of({"q": {"d1": {"s1": 1, "s2": 0}, "d2": {"s1": 2}}})
    for name in ("a.txt", "a.csv", "a.json", "a.jsonl"):
        held.write(tmp_path / name)
        assert SubtopicQrels.read(tmp_path / name) == held


@pytest.mark.parametrize("name", ["a b", "#a"])
def test_a_value_that_a_format_cannot_represent_is_refused_and_nothing_is_written(name, tmp_path):
    held = PreferenceQrels.of({name: {"g": {"d1": 1, "d2": 0}}})
    with pytest.raises(InputError, match="cannot be written"):
        held.write(tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UnknownName, match="cannot be written in the format 'parquet'"):
        held.write(tmp_path / "a", "parquet")


def test_an_id_with_a_carriage_return_is_kept_in_csv(tmp_path):
    held = SubtopicQrels.of({"q1": {"d\r1": {"a": 1.0}, "d2": {"a": 2.0}}})
    held.write(tmp_path / "a.csv")
    assert SubtopicQrels.read(tmp_path / "a.csv") == held
