"""Benchmark inputs are the same on every machine and in every form."""

import gzip

import numpy as np
import pytest
from workloads import MEASURES, MORE, Work, columns, files, mappings

import rankgauge

SIMPLE = Work(7, 40, 5)
SHAPES = ("simple", "real", "mixed")


def test_a_workload_is_the_same_every_day_and_everywhere():
    table = Work(2, 3, 3).table
    assert table.docs.tolist() == [[4045696, 6023240, 7320080], [6024164, 4882596, 1430671]]
    assert table.scores.tolist() == [[19.064121, 18.664466, 12.283408], [28.528157, 6.492267, 2.486499]]
    assert table.judged.tolist() == [[6023240, 4045696, 3077992], [6024164, 4882596, 2445785]]
    assert table.grades.tolist() == [[0, 2, 0], [3, 1, 1]]


def test_documents_are_unique_and_half_of_the_judged_are_retrieved():
    table = Work(300, 100, 9).table
    for docs, judged in zip(table.docs.tolist(), table.judged.tolist(), strict=True):
        assert len({*docs}) == 100
        assert len({*judged}) == 9
        assert len({*docs} & {*judged}) == 5


def test_scores_descend_and_one_in_a_hundred_is_that_of_its_neighbour():
    steps = np.diff(Work(300, 100, 9).table.scores)
    assert (steps <= 0).all()
    assert 0.005 < (steps == 0).mean() < 0.02


def test_random_order_changes_the_order_and_no_value():
    simple, mixed = (mappings(Work(7, 40, 5, shape)) for shape in ("simple", "mixed"))
    assert simple == mixed
    assert [*simple[1]["1000000"]] != [*mixed[1]["1000000"]]


@pytest.mark.parametrize("shape", SHAPES)
def test_files_mappings_and_frames_have_the_same_means(shape, tmp_path):
    work = Work(7, 40, 5, shape)
    measures = [*MEASURES, *MORE]
    expected = rankgauge.evaluate(*mappings(work), measures).mean()
    assert rankgauge.evaluate(*files(work, tmp_path), measures).mean() == expected
    qrels, run = (rankgauge.Qrels.from_columns, rankgauge.Run.from_columns)
    judged, found = columns(work)
    assert rankgauge.evaluate(qrels(*judged.values()), run(*found.values()), measures).mean() == (expected)


def test_lines_of_a_file_are_shuffled_on_request(tmp_path):
    lines = files(Work(7, 40, 5, "mixed"), tmp_path)[1].read_text().splitlines()
    queries = [line.split()[0] for line in lines]
    assert queries != sorted(queries)


def test_a_compressed_run_has_the_same_bytes(tmp_path):
    plain = files(SIMPLE, tmp_path)[1]
    packed = files(Work(7, 40, 5, gz=True), tmp_path)[1]
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()


def test_files_are_made_once(tmp_path):
    run = files(SIMPLE, tmp_path)[1]
    run.write_text("kept")
    assert files(SIMPLE, tmp_path)[1].read_text() == "kept"


def test_real_shapes_are_long_ids_tabs_and_all_digits_of_scores(tmp_path):
    fields = files(Work(7, 40, 5, "real"), tmp_path)[1].read_text().splitlines()[0].split("\t")
    assert len(fields[2]) == 36
    assert len(fields[4]) >= 16


def test_there_are_thirty_different_measures():
    assert len({*MEASURES}) == 20
    assert len({*MEASURES, *MORE}) == 30
