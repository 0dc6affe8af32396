"""Pages of evaluations: what they show, grades given in sight, and bad input."""

import json
import math
import re
import uuid

import pytest
from evaluated_project import QUERIES, create_evaluated, evaluation_app
from judging_pages import ORIGIN, sign_in, token_of
from starlette.testclient import TestClient

from rankgauge import compare, evaluate
from rankgauge.judging import Choice, export_judgments

PAIR = "a=1&b=2&m=nDCG%4010"


@pytest.fixture
def lead(evaluated):
    with TestClient(evaluation_app(evaluated), base_url=ORIGIN) as client:
        client.judge = sign_in(client, evaluated.judging, "Lea", "lead")
        yield client


def grade(client, query, document, value, choice=None):
    """Grade a document on the page of its query, as its form does."""
    fields = {"a": "1", "b": "2", "m": "nDCG@10", "depth": "10", "document": document, "grade": str(value)}
    fields |= {"choice": choice or str(uuid.uuid4()), "csrf": token_of(client)}
    return client.post(f"/compare/{query}", data=fields, headers={"Origin": ORIGIN})


def text_of(page):
    assert page.status_code == 200, page.text
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.text))


def test_pages_lead_from_the_verdict_to_the_query_and_its_steps(lead, evaluated):
    overview = lead.get("/").text
    assert "new#2" in overview
    part = re.search(r'data-part="([^"]+)"', overview)[1].replace("&amp;", "&")
    verdict = lead.get(part).text
    compared = re.search(r'class="button" href="([^"]+)"', verdict)[1].replace("&amp;", "&")
    page = lead.get(compared).text
    query = re.search(r'href="(/compare/[^"]+)"><bdi>q', page)[1].replace("&amp;", "&")
    rankings = lead.get(query).text
    steps = re.search(r'id="steps"[^>]* href="([^"]+)"', rankings)[1].replace("&amp;", "&")
    assert "step by step" in text_of(lead.get(steps))
    for page in ("/evaluations", "/evaluations/2", "/evaluations/2/causes", "/queries/q1", "/documents/d7?query=q1"):
        text_of(lead.get(page))


def test_the_verdict_is_that_of_compare(lead, evaluated):
    saved = compare(evaluated.evaluations.comparable([1, 2]), tested="nDCG@10").difference("new#2")
    assert saved.difference_text() in text_of(lead.get(f"/verdict?{PAIR}"))
    data = lead.get(f"/compare?{PAIR}&format=json").json()
    assert data["differences"][0]["difference"] == saved.difference


def test_documents_are_escaped_and_their_words_marked(lead):
    page = lead.get(f"/compare/q1?{PAIR}&doc=d7").text
    assert "<mark>Ties</mark> are <mark>broken</mark> by &lt;b&gt;rule 7&lt;/b&gt;." in page


def test_a_grade_in_sight_changes_values_and_verdict_as_a_fresh_evaluation_does(lead, evaluated):
    for query, value in (("q1", 2), ("q4", 1), ("q2", 0)):
        assert grade(lead, query, "d7", value).status_code == 200
    judgments = {query: {**grades} for query, grades in evaluated.collection.qrels.items()}
    for query, value in (("q1", 2), ("q4", 1), ("q2", 0)):
        judgments[query]["d7"] = value
    runs = [evaluated.evaluations.run(number) for number in (1, 2)]
    fresh = compare([evaluate(judgments, run, ["nDCG@10", "P@5", "RR"]) for run in runs], tested="nDCG@10")
    shown = lead.get(f"/compare?{PAIR}&format=json").json()["differences"][0]
    for name in ("mean", "baseline_mean", "difference", "low", "high", "corrected"):
        value = getattr(fresh.differences[0], name)
        assert shown[name] == (None if math.isnan(value) else pytest.approx(value, abs=1e-12))
    page = text_of(lead.get(f"/compare/q1?{PAIR}&doc=d7"))
    assert "grade 2" in page
    assert "as saved" in page
    assert evaluated.judgments["q1"]["d7"] == 2


def test_an_undone_grade_leaves_no_trace_in_the_values(lead, evaluated):
    before = lead.get(f"/compare?{PAIR}&format=json").json()["differences"]
    grade(lead, "q1", "d7", 2)
    assert lead.get(f"/compare?{PAIR}&format=json").json()["differences"] != before
    grade(lead, "q1", "d7", "undo")
    assert lead.get(f"/compare?{PAIR}&format=json").json()["differences"] == before
    assert evaluated.judgments == evaluated.collection.qrels


def test_a_grade_in_sight_counts_before_the_judgments_and_after_grades_given_blind(lead, evaluated):
    grade(lead, "q1", "d1", 0)  # judged 2 in the collection
    assert evaluated.judgments["q1"]["d1"] == 0
    assert "as saved: 2" in text_of(lead.get(f"/compare/q1?{PAIR}&doc=d1"))
    lead.post(
        "/deciding", data={"a": "1", "b": "2", "m": "nDCG@10", "csrf": token_of(lead)}, headers={"Origin": ORIGIN}
    )
    assert {*evaluated.judging.pools} <= {*QUERIES}
    task = evaluated.judging.next_task(lead.judge.id)
    chosen = task.presentation.documents[0]
    evaluated.judging.record(Choice("c1", task.presentation.id, lead.judge.id, "chosen", (chosen,)))
    assert evaluated.judgments[task.question.id][chosen] == 1  # the scale of the collection is unknown
    grade(lead, task.question.id, chosen, 2)
    assert evaluated.judgments[task.question.id][chosen] == 2
    assert [task.question.id, chosen] in export_judgments(evaluated.judging).about["in_sight"]
    assert "in sight of the rankings" in text_of(lead.get(f"/compare/{task.question.id}?{PAIR}&doc={chosen}"))


def test_a_grade_sent_twice_is_stored_once_and_two_people_grade_one_document(lead, evaluated):
    choice = str(uuid.uuid4())
    for _ in range(2):
        grade(lead, "q1", "d7", 2, choice)
    with evaluated.judging.reading() as stored:
        assert stored.count("choices") == 1
    with TestClient(evaluation_app(evaluated), base_url=ORIGIN) as other:
        sign_in(other, evaluated.judging, "Max", "admin")
        grade(other, "q1", "d7", 0)
        page = text_of(other.get(f"/compare/q1?{PAIR}&doc=d7"))
    assert "Lea : grade 2" in page
    assert "Max : grade 0" in page
    assert evaluated.judgments["q1"]["d7"] == 0  # the lower of the two middle grades


@pytest.mark.parametrize(("document", "value"), [("d7", "9"), ("d7", "x"), ("d7", ""), ("nothing", "1"), ("d7", "²")])
def test_a_grade_that_does_not_exist_is_refused_and_nothing_is_stored(lead, evaluated, document, value):
    assert grade(lead, "q1", document, value).status_code == 400
    assert not evaluated.judging.judgments()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/evaluations/99", 404),
        ("/evaluations/x", 404),
        ("/compare?a=1", 400),
        ("/compare?a=1&b=77", 404),
        ("/compare/nothing?a=1&b=2", 400),
        ("/queries/nothing", 404),
        ("/documents/nothing", 404),
        ("/explain/1/nothing", 400),
        ("/evaluations?page=-1", 200),
        ("/compare?a=1&b=2&m=nothing&order=nothing&page=99999999", 200),
    ],
)
def test_unknown_addresses_are_answered_with_what_is_wrong(lead, path, status):
    assert lead.get(path).status_code == status


def test_a_project_without_evaluations_says_so(tmp_path):
    project = create_evaluated(tmp_path / "handbook")
    for number in (1, 2):
        project.evaluations.delete(number)
    with TestClient(evaluation_app(project), base_url=ORIGIN) as client:
        sign_in(client, project.judging, "Lea", "lead")
        for path in ("/", "/evaluations"):
            assert "No evaluation is saved yet" in client.get(path).text


def test_without_texts_pages_show_ids(tmp_path):
    project = create_evaluated(tmp_path / "handbook")
    evaluation = project.evaluations.load(1)
    for name in ("a", "b"):
        run = project.evaluations.run(1)
        project.evaluations.add(evaluation, project.judgments, run=run, label=name)
    with TestClient(evaluation_app(project), base_url=ORIGIN) as client:
        sign_in(client, project.judging, "Rea", "reader")
        page = text_of(client.get("/compare/q1?a=3&b=4"))
        assert "The text was not saved" in page
        assert "d0" in page
        assert 'name="grade"' not in client.get("/compare/q1?a=3&b=4").text


def test_a_comparison_can_be_downloaded_as_a_page_with_texts(lead):
    page = lead.get(f"/compare?{PAIR}&format=html")
    assert "attachment" in page.headers["content-disposition"]
    assert QUERIES["q1"] in page.text


def test_readers_see_comparisons_but_judges_only_their_tasks(evaluated):
    for role, own, foreign in (("reader", "/evaluations", "/judge"), ("judge", "/judge", "/evaluations")):
        with TestClient(evaluation_app(evaluated), base_url=ORIGIN) as client:
            sign_in(client, evaluated.judging, role, role)
            assert client.get(own).status_code == 200
            assert client.get(foreign).status_code == 403
            assert json.dumps(foreign) not in client.get("/").text.replace("'", '"').partition("<main")[0]
