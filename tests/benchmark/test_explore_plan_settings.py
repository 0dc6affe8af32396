"""Configurations of a planned retriever: varied settings and the current one."""

import textwrap

import pytest

from rankgauge import BenchmarkPlan, FormatError, UnknownName, sample_path
from rankgauge.benchmark import explore_plan

PLAN = f"""
collection = '{sample_path("rankgauge.toml").parent}'
k = 10
timed = 0
[retrievers.bm25]
type = "bm25"
b = 0.4
[retrievers.dense]
type = "dense"
encoder = {{ type = "hashing" }}
[retrievers.both]
type = "hybrid"
of = ["bm25", "dense"]
[retrievers.passages]
type = "chunked"
retriever = "bm25"
chunker = {{ type = "fixed", size = 200 }}
[retrievers.mine]
type = "python"
call = "statistics:mean"
[explore]
"""


@pytest.fixture
def explored(tmp_path):
    def run(text):
        path = tmp_path / "rankgauge.toml"
        path.write_text(PLAN + textwrap.dedent(text), encoding="utf-8")
        found, _ = explore_plan(BenchmarkPlan.read(path), progress=False)
        return found

    return run


def test_defaults_are_part_of_todays_configuration(explored):
    found = explored("""
        retriever = "bm25"
        [explore.space]
        k1 = [0.9, 1.2]
        b = [0.4, 0.75]
        stop_words = ["german"]
        """)
    assert found.before.configuration == {"k1": 0.9, "b": 0.4, "stop_words": "english"}
    assert len(found.trials) == 5


def test_parts_are_varied_by_dots_and_numbers(explored):
    found = explored("""
        retriever = "both"
        [explore.space]
        "of.0.b" = [0.4, 0.75]
        "of.1.encoder.dimensions" = [64]
        depth = [100, 20]
        """)
    today = found.before.configuration
    assert (today["of.0.b"], today["depth"]) == (0.4, 100)
    assert len({trial.value for trial in found.trials}) > 1


def test_a_chunker_is_varied_as_a_whole_or_in_its_settings_not_both(explored):
    found = explored("""
        retriever = "passages"
        [explore.space]
        chunker = [{ type = "fixed", size = 100 }, { type = "fixed", size = 400, overlap = 50 }]
        """)
    assert found.before.configuration == {"chunker": {"type": "fixed", "size": 200}}
    with pytest.raises(FormatError, match=r"'chunker\.size' is a part of 'chunker'"):
        explored("""
            retriever = "passages"
            [explore.space]
            "chunker.size" = [100, 400]
            chunker = [{ type = "fixed", size = 200 }]
            """)


@pytest.mark.parametrize(
    ("setting", "said"),
    [("k2", "did you mean"), ('"retriever.k2"', "unknown option of bm25"), ('"of.5.k1"', "is not part")],
)
def test_a_setting_that_no_retriever_has_is_refused_before_anything_is_run(explored, setting, said):
    name = "passages" if "retriever" in setting else "bm25"
    with pytest.raises((FormatError, UnknownName), match=said):
        explored(f"retriever = '{name}'\n[explore.space]\n{setting} = [1]\n")


def test_unknown_settings_of_today_are_requested(explored):
    with pytest.raises(
        FormatError,
        match=r"explore.space.size: the project has no current value\nfix: also write it in \[retrievers.mine",
    ):
        explored('retriever = "mine"\n[explore.space]\nsize = [1, 2]\n')
