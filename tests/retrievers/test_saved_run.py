"""A saved run that answers."""

import pytest

from rankgauge import Query
from rankgauge.data.run import Run, write_run
from rankgauge.errors import InputError, UnknownName
from rankgauge.retrievers import SavedRun
from rankgauge.retrievers.protocol import search

RUN = {"q1": {"d1": 0.5, "d2": 0.75, "d3": 0.5}, "q2": {"d1": 1.0}}


def test_it_answers_by_query_id_best_first():
    saved = SavedRun(RUN)
    saved.index([])
    found = saved.search([Query("q2"), Query("q1", "late fees")], 2)
    assert found == [[("d1", 1.0)], [("d2", 0.75), ("d3", 0.5)]]


def test_a_file_answers_as_what_it_was_written_from(tmp_path):
    write_run(Run.of(RUN), tmp_path / "a.run")
    saved = SavedRun(str(tmp_path / "a.run"))
    assert [hits.ids for hits in search(saved, [Query("q1")], 10)] == [["d2", "d3", "d1"]]
    assert saved.settings == SavedRun(RUN).settings
    assert saved.settings != SavedRun({"q1": {"d1": 1.0}}).settings


def test_a_query_that_is_not_in_it_is_an_error_or_empty():
    with pytest.raises(InputError, match="no query 'q9'") as caught:
        SavedRun(RUN).search([Query("q1"), Query("q9")], 10)
    assert 'missing="empty"' in caught.value.fix
    assert SavedRun(RUN, missing="empty").search([Query("q9")], 10) == [[]]
    with pytest.raises(UnknownName):
        SavedRun(RUN, missing="ignore")


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError):
        SavedRun(tmp_path / "gone.run")
    with pytest.raises(InputError, match="twice"):
        SavedRun({"q1": [("d1", 1.0), ("d1", 2.0)]})
