"""Annotations in exports of Label Studio and Argilla."""

from rankgauge.formats.annotations import annotation_rows


def test_people_without_an_email_stay_different_judges():
    given = [
        {"completed_by": {"id": number, "email": ""}, "result": [{"from_name": "grade", "value": {"rating": number}}]}
        for number in (1, 2)
    ]
    rows = annotation_rows([{"data": {"query": "q1"}, "annotations": given}])
    assert [(row["annotator"], row["grade"]) for row in rows] == [(1, 1), (2, 2)]


def test_drafts_of_argilla_are_no_annotations():
    given = [{"value": 1, "user_id": "a", "status": "draft"}, {"value": 2, "user_id": "b", "status": "submitted"}]
    (row,) = annotation_rows([{"fields": {"query": "q1"}, "responses": {"grade": given}}])
    assert (row["annotator"], row["grade"]) == ("b", 2)
