"""Pages of evaluations: what they show, grades given in sight, and bad input."""

import json
import math
import re
import uuid
from collections import Counter
from dataclasses import replace

import pytest
from evaluated_project import QUERIES, create_evaluated, evaluation_app
from judging_pages import ORIGIN, sign_in, token_of
from sqlalchemy import Engine, event
from starlette.testclient import TestClient

from rankgauge import Project, Run, compare, diagnose, evaluate
from rankgauge.comparison import deciding_documents
from rankgauge.data import PreferenceQrels, SubtopicQrels
from rankgauge.judging import Choice, export_judgments
from rankgauge.web.workbench import Workbench

PAIR = "a=1&b=2&m=nDCG%4010"


@pytest.fixture
def lead(evaluated):
    with TestClient(evaluation_app(evaluated), base_url=ORIGIN) as client:
        client.judge = sign_in(client, evaluated.judging, "Lea", "lead")
        yield client


def grade(client, query, document, value):
    """Grade a document on the page of its query, as its form does."""
    fields = {"a": "1", "b": "2", "m": "nDCG@10", "depth": "10", "document": document, "grade": str(value)}
    fields["csrf"] = token_of(client)
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


@pytest.mark.parametrize(
    "path", ["/", "/evaluations/2", f"/compare?{PAIR}", f"/compare/q1?{PAIR}", "/documents/d7?query=q1", "/progress"]
)
def test_a_page_reads_the_store_in_one_transaction(lead, path):
    begun = Counter()

    def count(_):
        begun["transactions"] += 1

    event.listen(Engine, "begin", count)
    try:
        assert lead.get(path).status_code == 200
    finally:
        event.remove(Engine, "begin", count)
    assert begun["transactions"] == 1


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
    for path in ("/verdict", "/compare", "/compare/q1"):
        page = text_of(lead.get(f"{path}?{PAIR}&doc=d7"))
        assert "Provisional. Grades of 3 queries have changed" in page
        assert "can be biased" in page
    assert "grade 2" in page
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
    assert "grade 0" in text_of(lead.get(f"/compare/q1?{PAIR}&doc=d1"))
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


def test_a_grade_given_blind_counts_first_whatever_is_chosen_elsewhere(lead, evaluated):
    judging = evaluated.judging
    judging.change_settings(replace(judging.settings, mode="graded", shown=1))
    lead.post(
        "/deciding", data={"a": "1", "b": "2", "m": "nDCG@10", "csrf": token_of(lead)}, headers={"Origin": ORIGIN}
    )
    task = judging.next_task(lead.judge.id)
    (document,), query = task.presentation.documents, task.question.id
    judging.record(Choice("c1", task.presentation.id, lead.judge.id, "graded", grades=(2,)))
    grade(lead, query, document, 0)
    assert evaluated.judgments[query][document] == 2
    judging.change_settings(replace(judging.settings, mode="choice", shown=3))
    other = judging.next_task(lead.judge.id).presentation
    judging.record(Choice("c2", other.id, lead.judge.id, "none"))
    assert evaluated.judgments[query][document] == 2
    assert "grade 2" in text_of(lead.get(f"/compare/{query}?{PAIR}&doc={document}"))


def test_who_graded_a_document_in_sight_does_not_judge_it_blind(lead, evaluated):
    judging = evaluated.judging
    judging.change_settings(replace(judging.settings, mode="graded", shown=1, repeats=0.0))
    lead.post(
        "/deciding", data={"a": "1", "b": "2", "m": "nDCG@10", "csrf": token_of(lead)}, headers={"Origin": ORIGIN}
    )
    pools = judging.pools
    for document in pools["q1"]:
        grade(lead, "q1", document, 1)
    given = []
    while (task := judging.next_task(lead.judge.id)) is not None:
        given.append(task.question.id)
        judging.record(Choice(str(uuid.uuid4()), task.presentation.id, lead.judge.id, "graded", grades=(0,)))
    assert "q1" not in given
    assert {*given} == {*pools} - {"q1"}


def test_an_undone_grade_is_gone_after_evaluating_again(lead, evaluated):
    grade(lead, "q1", "d7", 2)
    evaluated.evaluate_again()
    grade(lead, "q1", "d7", "undo")
    page = text_of(lead.get("/compare/q1?a=3&b=4&m=nDCG%4010&doc=d7"))
    assert "not judged" in page
    assert "Provisional. Grades of 1 query have changed" in page


def test_the_oldest_of_the_selected_evaluations_is_the_baseline(lead):
    assert lead.get("/compare?b=2&b=1&format=json").json()["differences"][0]["baseline"] == "old#1"


def test_the_last_grade_sent_counts_even_if_an_earlier_one_was_equal(lead, evaluated):
    for value in (1, 2, 1):
        grade(lead, "q1", "d7", value)
    assert evaluated.judgments["q1"]["d7"] == 1


def test_a_deleted_evaluation_is_not_shown_any_more(lead, evaluated):
    pages = [
        "/evaluations/2",
        "/evaluations/2/causes",
        "/evaluations/2/causes/q1",
        f"/compare?{PAIR}",
        f"/compare/q1?{PAIR}",
        f"/verdict?{PAIR}",
        f"/deciding?{PAIR}",
        "/explain/2/q1",
    ]
    for page in pages:
        text_of(lead.get(page))
    evaluated.evaluations.delete(2)
    assert [lead.get(page).status_code for page in pages] == [404] * len(pages)
    for page in ("/", "/evaluations", "/queries/q1", "/documents/d7?query=q1"):
        assert "new#2" not in text_of(lead.get(page))


def test_bounds_after_grades_are_those_of_a_fresh_computation(lead, evaluated):
    lead.get(f"/deciding?{PAIR}")
    for query, document, value in (("q1", "d7", 2), ("q4", "d8", 1), ("q2", "d1", 1)):
        grade(lead, query, document, value)
    pair = [evaluated.evaluations.run(number) for number in (1, 2)]
    runs = [replace(run, name=name) for run, name in zip(pair, ("old#1", "new#2"), strict=True)]
    fresh = deciding_documents(evaluated.judgments, *runs, depth=10)
    assert fresh.summary() in text_of(lead.get(f"/deciding?{PAIR}"))


def test_a_compared_query_has_the_likely_cause_that_it_has_among_all(lead, evaluated):
    page = lead.get(f"/compare/q1?{PAIR}").text
    part = re.search(r'data-part="(/evaluations/2/causes/q1)"', page)[1]
    shown = text_of(lead.get(part))
    whole = diagnose(evaluated.evaluations.qrels(2), evaluated.evaluations.run(2), evaluated.evaluations.collection(2))
    assert f"Likely cause in new#2 , with the judgments as saved: {whole.of('q1').primary}" in shown
    alone = lead.app.state.workbench.diagnosis(evaluated.evaluations.entry(2), "q1")
    assert "not retrieved" in alone.of("q1").causes


def test_slices_are_means_of_the_differences_of_their_queries(lead, evaluated):
    judgments, groups = evaluated.judgments, {query: "even" if int(query[1]) % 2 == 0 else "odd" for query in QUERIES}
    for number in (1, 2):
        run = evaluated.evaluations.run(number)
        evaluated.evaluations.add(evaluate(judgments, run, "nDCG@10", groups=groups), judgments, run=run)
    first, second = (evaluated.evaluations.load(number) for number in (3, 4))
    even = [second.value(f"q{number}", "nDCG@10") - first.value(f"q{number}", "nDCG@10") for number in (0, 2, 4, 6)]
    assert f"even 4 {sum(even) / 4:+.3f} –" in text_of(lead.get("/compare?a=3&b=4"))
    assert "7 and more words 8" in text_of(lead.get(f"/compare?{PAIR}"))


@pytest.mark.parametrize(
    ("kind", "judgments", "measure", "shown"),
    [
        (SubtopicQrels, {"d0": {"t1": 1}, "d7": {"t1": 1, "t2": 2}}, "alpha_nDCG@10", "subtopic t2, grade 2"),
        (PreferenceQrels, {"g1": {"d0": 1, "d7": 2}, "g2": {"d7": 1, "d3": 0}}, "Prefs", "group g1"),
    ],
)
def test_special_judgments_are_shown_and_are_not_graded(lead, evaluated, kind, judgments, measure, shown):
    special = kind.of(dict.fromkeys(QUERIES, judgments))
    for number in (1, 2):
        run = evaluated.evaluations.run(number)
        evaluated.evaluations.add(evaluate(special, run, [measure, "nDCG@10"]), special, run=run)
    page = lead.get("/compare/q1?a=3&b=4&doc=d7")
    assert shown in text_of(page)
    assert f"The judgments of this evaluation are {kind.reads}" in text_of(page)
    assert 'name="grade"' not in page.text
    assert "There are no bounds" in text_of(lead.get("/deciding?a=3&b=4"))
    steps = lead.get(f"/explain/3/q1?m={measure.replace('@', '%40')}")
    assert f"no steps for measures of {kind.reads}" in text_of(steps)
    text_of(lead.get(re.search(r'href="(/queries/q1\?m=[^"]+)"', steps.text)[1]))
    assert "step by step" in text_of(lead.get("/explain/3/q1?m=nDCG%4010"))
    for page in ("/evaluations/3", "/evaluations/3/causes", "/compare?a=3&b=4", "/queries/q1"):
        text_of(lead.get(page))
    fields = {"a": "3", "b": "4", "document": "d7", "grade": "1", "csrf": token_of(lead)}
    assert lead.post("/compare/q1", data=fields, headers={"Origin": ORIGIN}).status_code == 400


def test_only_own_grades_can_be_undone(lead, evaluated):
    grade(lead, "q1", "d7", 2)
    with TestClient(evaluation_app(evaluated), base_url=ORIGIN) as other:
        sign_in(other, evaluated.judging, "Max", "lead")
        assert 'value="undo"' not in other.get(f"/compare/q1?{PAIR}&doc=d7").text
    assert 'value="undo"' in lead.get(f"/compare/q1?{PAIR}&doc=d7").text


def test_a_run_that_was_not_saved_cannot_be_regraded_and_the_page_says_so(lead, evaluated):
    for number in (1, 2):
        evaluation = evaluated.evaluations.load(number)
        evaluated.evaluations.add(evaluation, evaluated.judgments)
    grade(lead, "q1", "d7", 2)
    assert "was saved without its run" in text_of(lead.get("/compare?a=3&b=4"))


def test_without_documents_that_matter_there_is_nothing_to_judge(lead, evaluated):
    page = text_of(lead.get("/deciding?a=1&b=2&m=RR"))
    assert "documents in the first 10 ranks" in page
    run = evaluated.evaluations.run(1)
    cut = {
        query: [document for document in ranking if document in evaluated.judgments[query]]
        for query, ranking in run.items()
    }
    for name in ("x", "y"):
        evaluated.evaluate(Run(cut, name=name))
    assert "no judgment of these documents changes the sign" in text_of(lead.get("/deciding?a=3&b=4"))
    fields = {"a": "3", "b": "4", "m": "nDCG@10", "csrf": token_of(lead)}
    assert lead.post("/deciding", data=fields, headers={"Origin": ORIGIN}).status_code == 200


def test_values_that_do_not_count_are_shown_as_missing_and_have_no_bounds(lead, evaluated):
    judgments = {**evaluated.judgments, "q0": {"d0": 0}}
    for number in (1, 2):
        run = evaluated.evaluations.run(number)
        evaluated.evaluations.add(evaluate(judgments, run, "nDCG@10", undefined="skip"), judgments, run=run)
    page = text_of(lead.get("/compare?a=3&b=4&order=id"))
    assert re.search(r"q0 – – –", page)
    assert "There are no bounds" in text_of(lead.get("/deciding?a=3&b=4"))


def test_a_grade_sent_twice_is_stored_once_and_two_people_grade_one_document(lead, evaluated):
    for _ in range(2):
        grade(lead, "q1", "d7", 2)
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
            assert "No evaluations yet" in client.get(path).text


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


def test_possible_grades_are_those_of_the_evaluated_queries(evaluated):
    judged, run = {"q1": {"d1": 1}, "q2": {"d2": 3}}, {"q1": ["d1"], "q2": ["d2"]}
    some, every = (
        evaluated.evaluations.add(evaluate(judged, run, "P@5", queries=queries), judged, run=run)
        for queries in (["q1"], "all")
    )
    assert some.qrels == every.qrels
    workbench = Workbench(evaluated)
    assert (workbench.possible_grades(some), workbench.possible_grades(every)) == ({1}, {1, 3})


# ---- images of documents

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'


@pytest.fixture
def pictures(evaluated, tmp_path):
    """The folder of a collection with images and other files."""
    folder = evaluated.file.folder
    (folder / "img").mkdir()
    (folder / ".git").mkdir()
    (tmp_path / "outside.png").write_bytes(PNG)
    (folder / "img" / "link.png").symlink_to(tmp_path / "outside.png")
    for name, data in (
        ("img/a b.png", PNG),
        ("img/photo.JPG", b"\xff\xd8\xff\xe0 photo"),
        ("img/x.gif", b"GIF89a x"),
        ("img/x.webp", b"RIFF\x00\x00\x00\x0aWEBPVP8 "),
        ("img/sound.webp", b"RIFF\x00\x00\x00\x0aWAVEfmt "),
        ("img/x.svg", SVG),
        ("img/svg.png", SVG),
        ("img/page.png", b"<html><script>alert(1)</script>"),
        ("img/empty.png", b""),
        ("img/.hidden.png", PNG),
        (".git/x.png", PNG),
        ("secret.txt", b"secret"),
    ):
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a%20b.png", "image/png"), ("photo.JPG", "image/jpeg"), ("x.gif", "image/gif"), ("x.webp", "image/webp")],
)
def test_raster_images_of_the_collection_are_sent(lead, pictures, name, kind):
    answer = lead.get(f"/images/img/{name}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        *("img/x.svg", "img/svg.png", "img/page.png", "img/empty.png", "img/sound.webp", "img", "", "secret.txt"),
        *("img/.hidden.png", ".git/x.png", ".rankgauge/store.db", "rankgauge.toml", "img/none.png", "img/link.png"),
        *("..%2Foutside.png", "img/..%2F..%2F..%2Foutside.png", "%2e%2e/outside.png", "..%5Coutside.png"),
        *("%2Fetc%2Fpasswd", "/etc/passwd", "a%00.png", "x" * 5_000, "C:%5Cx.png", "file:%2F%2F%2Fetc%2Fpasswd"),
    ],
)
def test_no_other_file_is_sent(lead, pictures, path):
    answer = lead.get(f"/images/{path}", follow_redirects=False)
    assert answer.status_code == 404
    assert "no such" in answer.text


def test_images_are_for_people_who_signed_in(evaluated, pictures):
    client = TestClient(evaluation_app(evaluated), base_url=ORIGIN)
    assert client.get("/images/img/x.gif").status_code == 401
    for role in ("judge", "reader"):
        sign_in(client, evaluated.judging, role, role)
        assert client.get("/images/img/x.gif").status_code == 200


@pytest.mark.parametrize(
    "collection", ['collection = "corpus.jsonl"', 'collection = "none"', "", 'collection = { source = "." }']
)
def test_images_need_a_folder_of_documents(evaluated, pictures, collection):
    path = evaluated.file.path
    path.write_text(path.read_text().replace('collection = "."', collection))
    project = Project(path)
    with project.judging, project.evaluations:
        client = TestClient(evaluation_app(project), base_url=ORIGIN)
        sign_in(client, project.judging, "Ann", "judge")
        assert client.get("/images/img/x.gif").status_code == (200 if "source" in collection else 404)


def test_a_document_in_markdown_is_displayed_as_html_on_pages_of_evaluations(tmp_path):
    folder = tmp_path / "handbook"
    folder.mkdir()
    for number in range(3):
        (folder / f"ties-{number}.md").write_text(
            f"# Ties {number}\n\n**Ties** are broken\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
        )
    (folder / "questions.csv").write_text("question,relevant\nhow are ties broken,ties-1.md\nties,ties-2.md\n")
    (folder / "rankgauge.toml").write_text(
        'collection = "."\n[retrievers.a]\ntype = "bm25"\n[retrievers.b]\ntype = "bm25"\nk1 = 0.5\n'
    )
    project = Project(folder)
    project.bench()
    with project.open_judging(), project.evaluations:
        client = TestClient(evaluation_app(project), base_url=ORIGIN)
        sign_in(client, project.judging, "Lea", "lead")
        query = project.evaluations.load(1).query_ids[0]
        for path in (f"/documents/ties-1.md?query={query}", f"/compare/{query}?a=1&b=2&doc=ties-1.md"):
            page = client.get(path).text
            assert "<p><strong><mark>Ties</mark></strong> are <mark>broken</mark></p>" in page
            assert "<td>1</td>" in page
