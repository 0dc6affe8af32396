"""Tasks for Label Studio, and exports of Label Studio and Argilla, with their own libraries."""

import json

import pytest

from rankgauge.judging import (
    Candidate,
    Document,
    JudgingProject,
    Question,
    Settings,
    Source,
    export_judgments,
    import_judgments,
    write_label_studio,
)

LABELS = ("off topic", "related", 'answers "it" & more')
DOCUMENTS = [Document(f"d{n}", {"title": f"Title {n}", "text": "a < b"}) for n in range(6)]


@pytest.fixture
def project(tmp_path):
    made = JudgingProject.create(tmp_path / "a.db", Settings(mode="graded", grades=LABELS))
    made.add_questions([Question("q1", "How are ties broken?"), Question("q2", "What is a pool?")])
    pairs = [(question, document.id) for question in ("q1", "q2") for document in DOCUMENTS]
    made.add_candidates([Candidate(*pair, (Source("bm25"),)) for pair in pairs], DOCUMENTS)
    return made


def test_label_studio_accepts_the_tasks_and_its_exports_are_read(project, tmp_path):
    interfaces = pytest.importorskip("label_studio_sdk.label_interface")
    converters = pytest.importorskip("label_studio_sdk.converter")
    write_label_studio(project, tmp_path / "tasks.json")
    config = (tmp_path / "tasks.json.xml").read_text()
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    interface = interfaces.LabelInterface(config)
    interface.validate()
    assert all(interface.validate_task(task) for task in tasks)
    assert set(interface.get_control("grade").labels) == set(LABELS)
    for number, task in enumerate(tasks, 1):
        answer = {"id": "a", "from_name": "grade", "to_name": "text", "type": "choices"}
        answer["value"] = {"choices": [LABELS[number % 3]]}
        annotation = {"id": number, "completed_by": 1, "result": [answer], "was_cancelled": False}
        assert interface.validate_annotation(annotation)
        task |= {"id": number, "annotations": [annotation], "predictions": [], "drafts": []}
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    converter = converters.Converter(config, project_dir=str(tmp_path))
    for form in ("JSON_MIN", "CSV"):
        converter.convert(str(tmp_path / "export.json"), str(tmp_path / form), form, is_dir=False)
    assert import_judgments(project, tmp_path / "export.json").new == 12
    assert import_judgments(project, tmp_path / "JSON_MIN" / "result.json").known == 12
    assert import_judgments(project, tmp_path / "CSV" / "result.csv").known == 12
    judged = export_judgments(project).judgments
    for number, task in enumerate(tasks, 1):
        assert judged[task["data"]["query"]][task["data"]["document"]] == number % 3


@pytest.mark.parametrize("flatten", [False, True])
def test_records_of_argilla_are_read(flatten, project, tmp_path):
    rg = pytest.importorskip("argilla")
    from uuid import UUID

    from argilla.records._io import GenericIO

    ann, bob = UUID(int=1), UUID(int=2)

    def record(document, *given):
        return rg.Record(
            fields={"question": "How are ties broken?", "text": "a < b"},
            metadata={"query": "q1", "document": document},
            responses=[rg.Response("grade", value, user_id=user, status="submitted") for user, value in given],
            suggestions=[rg.Suggestion("grade", "related", agent="a model", score=0.3)],
        )

    # `Dataset.records` of a server has this method, too.
    records = [record("d1", (ann, LABELS[2]), (bob, LABELS[1])), record("d2", (ann, LABELS[0])), record("d3")]
    (tmp_path / "argilla.json").write_text(json.dumps(GenericIO.to_list(records, flatten=flatten), default=str))
    done = import_judgments(project, tmp_path / "argilla.json")
    assert (done.new, done.judges) == (3, (str(ann), str(bob)))
    assert dict(export_judgments(project).judgments["q1"]) == {"d1": 1, "d2": 0}
