"""The script of the page on scale copies the sample, and all ways to evaluate the copies agree."""

import pytest
from command import run
from docs_scripts import copies_of_the_sample

import rankgauge

pytest.importorskip("pyarrow")

MEASURES = ("nDCG@10", "RR@10", "P@10", "R@100", "AP")


def test_copies_of_the_sample_have_its_means_in_memory_and_in_parts(tmp_path):
    files = copies_of_the_sample(tmp_path, 20)
    words = ["evaluate", *files, "--as", "csv", *(f"-m{measure}" for measure in MEASURES)]
    memory, stream = run(*words).stdout, run(*words, "--memory", "64MB").stdout
    assert memory == stream
    lines = [line.split(",") for line in memory.splitlines()]
    assert lines[0] == ["run", *MEASURES]
    for name, *means in lines[1:]:
        paths = rankgauge.sample_path("qrels.txt"), rankgauge.sample_path(f"runs/{name}.run")
        expected = rankgauge.evaluate(*paths, MEASURES).mean()
        assert list(map(float, means)) == pytest.approx(list(expected.values()), rel=1e-12)
