"""Judgments made elsewhere: several judges, other column names, preferences, invalid rows."""

import csv
import json
import re
from collections import Counter, defaultdict

import pytest

from rankgauge.data import Qrels
from rankgauge.errors import FormatError, InputError, UnknownName
from rankgauge.formats import InFormat
from rankgauge.judging import (
    Candidate,
    Choice,
    Document,
    JudgingProject,
    Question,
    Settings,
    Source,
    export_judgments,
    import_judgments,
    judging_status,
    measure_agreement,
    measure_relevance,
)


@pytest.fixture
def project(tmp_path):
    """A project with two questions."""
    made = JudgingProject.create(tmp_path / "a.db", Settings(mode="graded"))
    made.add_questions([Question("q1", "How are ties broken?"), Question("q2", "What is a pool?")])
    return made


def grades_of(project):
    """Return the grades that count, by judge, question, and document."""
    names = {each.id: each.name for each in project.judges.values()}
    return {
        (names[each.presentation.judge], each.presentation.question, *each.presentation.documents): each.choice.grades[
            0
        ]
        for each in project.judgments()
    }


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.jsonl"])
def test_a_column_of_judges_is_found(name, project, tmp_path):
    rows = [("q1", "a", 2, "Ann"), ("q1", "a", 0, "Bob"), ("q2", "b", 1, "Ann")]
    keys = ("query_id", "doc_id", "relevance", "annotator")
    if name == "r.jsonl":
        text = "".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows)
    else:
        by = "," if name == "r.csv" else "\t"
        text = "\n".join(by.join(map(str, row)) for row in [keys, *rows]) + "\n"
    (tmp_path / name).write_text(text)
    done = import_judgments(project, tmp_path / name)
    assert (done.new, done.judges) == (3, ("Ann", "Bob"))
    assert grades_of(project) == {("Ann", "q1", "a"): 2, ("Bob", "q1", "a"): 0, ("Ann", "q2", "b"): 1}
    assert {each.status for each in project.judgments()} == {"counted"}
    assert {each.presentation.purpose for each in project.judgments()} == {"import"}


def test_judgments_of_a_model_are_never_those_of_people(project):
    import_judgments(project, {"q1": {"a": 3}}, "gpt", kind="model")
    assert [each.status for each in project.judgments()] == ["model"]
    with pytest.raises(InputError):
        export_judgments(project)


def test_a_corrected_file_corrects_and_keeps_what_was(project):
    import_judgments(project, {"q1": {"a": 2, "b": 1}}, "Ann")
    done = import_judgments(project, {"q1": {"a": 3, "b": 1, "c": 0}}, "Ann")
    assert (done.new, done.changed, done.known) == (1, 1, 1)
    assert dict(export_judgments(project).judgments["q1"]) == {"a": 3, "b": 1, "c": 0}
    with project.reading() as stored:
        assert len(stored.choices()) == 4


def test_questions_are_found_by_text_and_labels_are_grades(project, tmp_path):
    (tmp_path / "r.csv").write_text("question,url,stars\nHow are ties broken?,a,perfect\nq2,b,not relevant\n")
    names = {"query": "question", "document": "url", "grade": "stars"}
    import_judgments(project, tmp_path / "r.csv", "Ann", columns=names)
    assert grades_of(project) == {("Ann", "q1", "a"): 3, ("Ann", "q2", "b"): 0}


def test_negative_grades_are_no_judgments(project):
    done = import_judgments(project, {"q1": {"a": -1, "b": 1}})
    assert (done.new, done.unjudged) == (1, 1)
    assert dict(export_judgments(project).judgments["q1"]) == {"b": 1}


def test_a_broken_row_stores_nothing_and_may_be_left_out(project, tmp_path):
    path = tmp_path / "q.txt"
    path.write_text("q1 0 a 2\nq1 0 b two\nq9 0 a 1\nq1 0 c 7\nq1 0 d 0.5\nq1 0 a 1\nq1 0\nq2 0 a 1\n")
    with pytest.raises(FormatError) as caught:
        import_judgments(project, path)
    assert (caught.value.line, caught.value.path) == (2, str(path))
    assert project.judgments() == []
    assert project.judges == {}
    done = import_judgments(project, path, skip_bad=True)
    assert done.new == 2
    assert sorted(re.search(r"line (\d+)", said)[1] for said in done.skipped) == list("234567")
    for said in done.skipped:
        assert "fix: " in said
    assert "line 6: 'a' was judged for 'q1' by this judge in line 1" in " ".join(done.skipped)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"query": "q", "document": "d"}, "no column for grade"),
        ({"query": "q", "document": "d", "grade": "g", "stars": "g"}, "'stars' is not known"),
        ({"query": "q", "left": "d", "winner": "g"}, "no column for right"),
        ({"query": "q", "document": "d", "grade": "x"}, "there is no column 'x'"),
    ],
)
def test_missing_columns_are_reported(columns, said, project, tmp_path):
    (tmp_path / "r.csv").write_text("q,d,g\nq1,a,1\n")
    with pytest.raises((UnknownName, InputError), match=said):
        import_judgments(project, tmp_path / "r.csv", columns=columns)


def test_pairs_with_a_winner_are_choices(project, tmp_path):
    (tmp_path / "p.csv").write_text(
        "q,a,b,w,who\nq1,x,y,left,Ann\nq1,x,y,y,Bob\nq1,x,z,tie,Ann\nq2,x,y,none,Ann\nq2,x,z,?,Bob\n"
    )
    columns = {"query": "q", "left": "a", "right": "b", "winner": "w", "judge": "who"}
    with pytest.raises(FormatError, match="the winner is"):
        import_judgments(project, tmp_path / "p.csv", columns=columns)
    done = import_judgments(project, tmp_path / "p.csv", columns=columns, skip_bad=True)
    assert (done.new, len(done.skipped)) == (4, 1)
    said = [(each.choice.outcome, each.choice.documents, each.status) for each in project.judgments()]
    assert said == [
        ("chosen", ("x",), "counted"),
        ("chosen", ("y",), "counted"),
        ("cannot tell", (), "cannot tell"),
        ("none", (), "counted"),
    ]


@pytest.mark.parametrize(
    ("group", "outcome"),
    [
        ({"a": 2, "b": 1, "c": 1}, ("choice", ("a",))),
        ({"a": 1, "b": 0}, ("choice", ("a",))),
        ({"a": 0, "b": 0}, ("choice", ())),
        ({"a": 4, "b": 3, "c": 2}, ("ranking", ("a", "b", "c"))),
        ({"a": 3, "b": 2, "c": 1}, ("ranking", ("a", "b"))),
        ({"a": 5, "b": 4, "c": 4}, ("choice", ("a",))),
        ({"a": 2, "b": 2, "c": 1}, None),
        ({"a": 1, "b": 1}, None),
    ],
    ids=str,
)
def test_a_group_becomes_a_choice_or_a_ranking(group, outcome, project):
    if outcome is None:
        with pytest.raises(InputError, match="the same grade above the lowest, or all have it"):
            import_judgments(project, {"q1": {"g": group}}, preferences=True)
        return
    import_judgments(project, {"q1": {"g": group}}, preferences=True)
    (each,) = project.judgments()
    assert (each.presentation.mode, each.choice.documents) == outcome
    assert set(each.presentation.documents) == set(group)


def test_a_task_of_the_project_is_not_judged_again_by_an_import(project, tmp_path):
    other = JudgingProject.create(tmp_path / "b.db")
    other.add_questions([Question("q1", "?")])
    name = "00000000-0000-4000-8000-000000000000"
    import_judgments(other, {"q1": {name: {"a": 2, "b": 1}}}, "Ann", preferences=True)
    with pytest.raises(InputError, match="somebody judged differently"):
        import_judgments(other, {"q1": {name: {"a": 1, "b": 2}}}, "Bob", preferences=True)


def test_two_judges_of_one_name_are_told_apart_by_identifier(project):
    one, _ = project.add_judge("Ann")
    project.add_judge("Ann")
    with pytest.raises(InputError, match="2 judges have the name 'Ann'"):
        import_judgments(project, {"q1": {"a": 1}}, "Ann")
    assert import_judgments(project, {"q1": {"a": 1}}, one.id).new == 1


# ---- real judgments


@pytest.mark.slow
def test_codesearchnet_is_imported_whole(data_folder, tmp_path):
    """4,006 grades of people whom the file does not name, in a special format."""
    path = data_folder / "codesearchnet-annotations" / "annotationStore.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    columns = {"query": "Query", "document": "GitHubUrl", "grade": "Relevance", "comment": "Notes"}
    with JudgingProject.create(tmp_path / "csn.db", Settings(mode="graded")) as project:
        with pytest.raises(FormatError, match="the project has no question"):
            import_judgments(project, path, columns=columns)
        done = import_judgments(project, path, "annotator", columns=columns, several=True, add_questions=True)
        assert done.new == len(rows) == 4006
        assert done.questions == len({row["Query"] for row in rows})
        given = defaultdict(list)
        for row in rows:
            given[row["Query"], row["GitHubUrl"]].append(int(row["Relevance"]))
        # The nth judgment of a pair is assigned to the nth judge.
        sizes = Counter(len(grades) for grades in given.values())
        assert len(done.judges) == max(sizes)
        qrels = export_judgments(project).grades
        for (query, document), grades in given.items():
            assert qrels[query][document] == sorted(grades)[(len(grades) - 1) // 2]
        assert measure_agreement(project.judgments(), project.judges) is not None
        again = import_judgments(project, path, "annotator", columns=columns, several=True)
        assert (again.new, again.known) == (0, 4006)


@pytest.mark.slow
def test_llmfao_is_imported_whole(data_folder, tmp_path):
    """8,931 pairwise choices of crowd workers between answers of models."""
    path = data_folder / "preferences" / "llmfao.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    columns = {"query": "prompt", "left": "left", "right": "right", "winner": "winner", "judge": "worker"}
    with JudgingProject.create(tmp_path / "llmfao.db") as project:
        done = import_judgments(project, path, columns=columns, add_questions=True, skip_bad=True)
        assert done.new + len(done.skipped) == len(rows)
        shown, chosen = Counter(), Counter()
        for each in project.judgments():
            if each.counted:
                shown.update(each.presentation.documents)
                chosen.update(each.choice.documents)
        found = measure_relevance(project.judgments()).documents
        for name in shown:
            mine = [each for each in found if each.document == name]
            assert sum(each.shown for each in mine) == shown[name]
            assert sum(each.chosen for each in mine) == chosen[name]


def test_a_format_can_be_named(project, tmp_path):
    (tmp_path / "judged").write_text("query_id,doc_id,relevance\nq1,a,1\n")
    assert import_judgments(project, InFormat(tmp_path / "judged", "csv")).new == 1


def test_imported_grades_replace_tasks_of_their_documents_only(tmp_path):
    settings = Settings(mode="graded", overlap=0.0, repeats=0.0, gold=0.0, random=0.0)
    with JudgingProject.create(tmp_path / "judging.db", settings) as project:
        project.add_questions([Question("q1", "one")])
        grades = {"q1": {"a": 1, **{f"other{number}": 0 for number in range(9)}}}
        for judge in ("Ann", "Bo", "Cy"):
            import_judgments(project, grades, judge)
        pool = [Candidate("q1", name, (Source("bm25", rank=1),)) for name in "abcd"]
        project.add_candidates(pool, [Document(name) for name in "abcd"])
        assert judging_status(project).left == 3
        judge, _ = project.add_judge("Di")
        judged = []
        while (task := project.next_task(judge.id)) is not None:
            shown = task.presentation
            judged += shown.documents
            project.record(Choice(shown.id, shown.id, judge.id, "graded", grades=(1,)))
        assert sorted(judged) == ["b", "c", "d"]
        assert judging_status(project).complete == 1


# As Label Studio 1.23 and Argilla 2.8 write them, with fewer keys.
_DATA = {"query": "q1", "question": "How are ties broken?", "document": "a", "text": "By document id."}
_CHOICE = {"id": "x1", "from_name": "grade", "to_name": "text", "type": "choices", "value": {"choices": ["relevant"]}}
_COMMENT = {
    "id": "x2",
    "from_name": "comment",
    "to_name": "text",
    "type": "textarea",
    "value": {"text": ["good"]},
}
_RATING = {"id": "x1", "from_name": "grade", "to_name": "text", "type": "rating", "value": {"rating": 0}}
_RELATION = {"from_id": "x1", "to_id": "x2", "type": "relation", "direction": "right"}
LABEL_STUDIO = [
    {
        "id": 1,
        "annotations": [
            {"id": 1, "completed_by": 1, "result": [_CHOICE, _COMMENT, _RELATION], "was_cancelled": False},
            {"id": 2, "completed_by": {"id": 2, "email": "bob@example.org"}, "result": [_RATING]},
            {"id": 3, "completed_by": 3, "result": [], "was_cancelled": True},
        ],
        "drafts": [],
        "predictions": [{"model_version": "m", "result": [_CHOICE]}],
        "data": _DATA,
        "meta": {},
    },
    {"id": 2, "annotations": [], "drafts": [], "predictions": [], "data": {**_DATA, "document": "b"}, "meta": {}},
]
JSON_MIN = [
    {**_DATA, "id": 1, "grade": "relevant", "comment": "good", "annotator": 1, "annotation_id": 1, "lead_time": 3.2},
    {**_DATA, "id": 1, "grade": [{"rating": 0}], "annotator": "bob@example.org", "annotation_id": 2},
]
_FIELDS = {"question": "How are ties broken?", "text": "By document id."}
ARGILLA = [
    {
        "id": "r1",
        "fields": _FIELDS,
        "metadata": {"query": "q1", "document": "a"},
        "suggestions": {"grade": {"value": 3, "score": 0.3, "agent": "m"}},
        "responses": {
            "grade": [{"value": "relevant", "user_id": "1"}, {"value": 0, "user_id": "bob@example.org"}],
            "comment": [{"value": "good", "user_id": "1"}],
        },
        "vectors": {},
        "status": "pending",
    },
    {"id": "r2", "fields": _FIELDS, "metadata": {"query": "q1", "document": "b"}, "responses": {}},
]
ARGILLA_FLAT = [
    {
        "id": "r1",
        **_FIELDS,
        "query": "q1",
        "document": "a",
        "grade.responses": ["relevant", 0, 3],
        "grade.responses.users": ["1", "bob@example.org", "2"],
        "grade.responses.status": ["submitted", "submitted", "draft"],
        "comment.responses": ["good"],
        "comment.responses.users": ["1"],
        "comment.responses.status": ["submitted"],
        "grade.suggestion": 3,
    },
    {"id": "r2", **_FIELDS, "query": "q1", "document": "b", "grade.responses": None, "grade.responses.users": None},
]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("content", [LABEL_STUDIO, JSON_MIN, ARGILLA, ARGILLA_FLAT])
def test_exports_of_annotation_tools_are_read(content, indent, project, tmp_path):
    (tmp_path / "r.json").write_text(json.dumps(content, indent=indent))
    done = import_judgments(project, tmp_path / "r.json")
    assert (done.new, done.judges) == (2, ("1", "bob@example.org"))
    assert grades_of(project) == {("1", "q1", "a"): 2, ("bob@example.org", "q1", "a"): 0}
    assert [each.choice.comment for each in project.judgments()] == ["good", ""]
    assert import_judgments(project, tmp_path / "r.json").known == 2


def test_other_questions_of_an_annotation_tool_are_named_as_columns(project, tmp_path):
    pair = {"id": "x", "from_name": "winner", "to_name": "winner", "type": "pairwise", "value": {"selected": "left"}}
    data = {"query": "q1", "left": "a", "right": "b"}
    task = {"id": 1, "annotations": [{"id": 1, "completed_by": 7, "result": [pair]}], "data": data}
    (tmp_path / "r.json").write_text(json.dumps([task]))
    columns = {"query": "query", "left": "left", "right": "right", "winner": "winner", "judge": "annotator"}
    assert import_judgments(project, tmp_path / "r.json", columns=columns).judges == ("7",)
    assert [each.choice.documents for each in project.judgments()] == [("a",)]


def test_a_grade_outside_the_scale_names_query_and_document(project, tmp_path):
    (tmp_path / "r.json").write_text(json.dumps([{**JSON_MIN[0], "grade": ["relevant", "perfect"]}]))
    with pytest.raises(FormatError, match=r"r\.json, query 'q1', document 'a': the grade .* is not one of the 4"):
        import_judgments(project, tmp_path / "r.json")


def test_a_json_list_without_judges_is_read_as_before(project, tmp_path):
    (tmp_path / "r.json").write_text(json.dumps([{"query": "q1", "document": "a", "grade": 2}]))
    assert import_judgments(project, tmp_path / "r.json", "Ann").judges == ("Ann",)
    (tmp_path / "s.json").write_text(json.dumps({"q1": {"b": 1}}))
    assert import_judgments(project, tmp_path / "s.json", "Ann").new == 1


@pytest.mark.parametrize(("content", "tool"), [(LABEL_STUDIO, "Label Studio"), (ARGILLA, "Argilla")])
def test_an_evaluation_says_which_command_reads_the_export(content, tool, tmp_path):
    (tmp_path / "r.json").write_text(json.dumps(content))
    with pytest.raises(FormatError, match=f"an export of {tool}: rankgauge judge import reads it"):
        Qrels.of(tmp_path / "r.json")


@pytest.mark.parametrize(
    "task",
    [
        {"data": {}, "annotations": [5]},
        {"data": {}, "annotations": [{"id": 1}]},
        {"data": {}, "annotations": [{"completed_by": [1], "result": [_CHOICE]}]},
        {"data": {}, "annotations": [{"result": [{"from_name": "grade"}]}]},
        {"fields": {}, "responses": {"grade": 5}},
        {"fields": {}, "responses": {"grade": [{}]}},
        {"grade.responses": [1], "grade.responses.users": ["a", "b"], "grade.responses.status": ["submitted"]},
        {"grade.responses": [1]},
    ],
)
def test_a_broken_export_is_an_error_that_names_the_record(task, project, tmp_path):
    (tmp_path / "r.json").write_text(json.dumps([*LABEL_STUDIO, task]))
    with pytest.raises(FormatError, match=r"r\.json: record 3 is not as Label Studio or Argilla writes it"):
        import_judgments(project, tmp_path / "r.json")
    assert not project.judgments()


def test_an_export_without_annotations_is_named(project, tmp_path):
    skipped = {"data": {"query": "q1"}, "annotations": [{"completed_by": 1, "was_cancelled": True, "result": []}]}
    (tmp_path / "tasks.json").write_text(json.dumps([skipped]), encoding="utf-8")
    with pytest.raises(FormatError, match="there are no annotations"):
        import_judgments(project, tmp_path / "tasks.json")
