"""The project on the bundled sample."""

import pytest

import rankgauge
from rankgauge.judging import Choice, demo_project, project_status


def test_the_demo_has_questions_documents_and_tasks(tmp_path):
    with demo_project(tmp_path / "demo.db") as project:
        status = project_status(project)
        assert (status.questions, status.pooled) == (30, 30)
        ann = project.add_judge("Ann")[0]
        task = project.next_task(ann.id)
        assert len(task.documents) == 3
        assert all(document.fields["title"] for document in task.documents)
        assert task.guideline.startswith("Choose the document that answers the question best")


def test_a_demo_that_exists_is_opened_again(tmp_path):
    with demo_project(tmp_path / "demo.db") as project:
        ann = project.add_judge("Ann")[0]
        task = project.next_task(ann.id).presentation
        project.record(Choice("c1", task.id, ann.id, "none"))
    with demo_project(tmp_path / "demo.db") as project:
        assert project_status(project).judged == 1


def test_another_file_is_refused(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("no database\n" * 200, encoding="utf-8")
    with pytest.raises(rankgauge.RankgaugeError):
        project_status(demo_project(file))
    assert file.read_text(encoding="utf-8").startswith("no database")
