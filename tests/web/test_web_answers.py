"""Pages of answers: the limiting stage, verdicts with corrections, and verdicts of people without seeing others."""

import re
from dataclasses import replace

import pytest
from evaluated_project import EVIL, RECORDS, evaluation_app, save_answers as saved
from judging_pages import ORIGIN, sign_in, token_of
from starlette.testclient import TestClient

from rankgauge import Project
from rankgauge.answers import AnswerRecord, Context, Verdict, VerdictStore
from rankgauge.store import WholeStore

TWO_ITEMS = AnswerRecord("q3", "How old is it?", "It is old.", (Context("d3", "It is 90 years old."),), "It is 90.")


@pytest.fixture
def lead(evaluated):
    client = TestClient(evaluation_app(evaluated), base_url=ORIGIN)
    sign_in(client, evaluated.judging, "Lea", "lead")
    client.headers["X-CSRF-Token"] = token_of(client)
    return client


def verdicts_of(project, person="Lea"):
    with VerdictStore(project.file.store) as store:
        return store.verdicts(person)


def test_the_page_begins_with_the_limiting_stage_and_leads_to_each_answer(lead, evaluated):
    number = saved(evaluated)
    assert f"/evaluations/{number}/answers" in lead.get(f"/evaluations/{number}").text
    assert "How old is it?" in lead.get(f"/evaluations/{number}").text
    page = lead.get(f"/evaluations/{number}/answers").text
    assert "Generation is at fault in" in page
    assert "abstained though answerable" in page
    assert "rankgauge diagnose" not in page  # commands are for the command line
    assert f"/evaluations/{number}/answers/q%2F1" in page
    one = lead.get(f"/evaluations/{number}/answers", params={"cause": "abstained though answerable"}).text
    assert "How old is it?" in one
    assert "answers/q%2F1" not in one
    data = lead.get(f"/evaluations/{number}/answers", params={"format": "json"}).json()
    assert data["schema"] == "rankgauge/answer-diagnosis/1"


def test_the_overview_compares_rankings_and_leads_to_the_answers(lead, evaluated):
    number = saved(evaluated)
    page = lead.get("/").text
    assert "Is <bdi>new#2</bdi> better" in page
    assert f"/evaluations/{number}/answers" in page
    assert "to compare it with" not in page
    assert "Compared with" not in lead.get(f"/evaluations/{number}").text


def test_a_corrected_verdict_is_stored_and_shows_what_it_changes(lead, evaluated):
    number = saved(evaluated)
    address = f"/evaluations/{number}/answers/q%2F1"
    page = lead.get(address)
    assert "→" not in page.text
    key = key_of(page)  # the first claim, which the first context supports
    assert lead.post(address, data={"key": key, "label": "not stated"}).status_code == 200
    (verdict,) = verdicts_of(evaluated)
    assert (verdict.key, verdict.label, verdict.prompt) == (key, "not stated", "in sight")
    page = lead.get(address).text
    assert "→" in page
    assert "not stated (<bdi>Lea</bdi>)" in page
    assert "People gave verdicts on 1 answer." in lead.get(f"/evaluations/{number}/answers").text


@pytest.mark.parametrize("prompt", ["p", ""])
def test_answers_judged_by_a_model_or_a_person_show_its_verdicts_only(lead, evaluated, prompt):
    number = saved(evaluated, judge="small", prompt=prompt)
    with VerdictStore(evaluated.file.store) as store:
        keys = [verdict.key for verdict in store.verdicts()]
        store.add([Verdict(key, "contradicted", "other", "p") for key in keys])
        store.add([Verdict(keys[-1], "supported", "small")])  # from a file, without the prompt
    page = lead.get(f"/evaluations/{number}/answers/q%2F1").text
    assert "(<bdi>" not in page
    assert "(<bdi>" not in lead.get(f"/evaluations/{number}/answers/q2").text
    assert "<td>contradicted</td>" not in page
    assert "<td>supported</td>" in page


def test_an_evaluation_without_answers_and_an_unknown_question_are_named(lead, evaluated):
    assert "No answers were saved" in lead.get("/evaluations/1/answers").text
    assert lead.get("/evaluations/1/answers").status_code == 404
    assert lead.get(f"/evaluations/{saved(evaluated)}/answers/q9").status_code == 404


def test_an_evaluation_whose_answers_were_not_saved_has_a_page(lead, evaluated):
    evaluation = evaluated.evaluations.load(saved(evaluated))
    entry = evaluated.evaluations.add(evaluation, settings=evaluation.settings)
    assert lead.get(f"/evaluations/{entry.id}").status_code == 200
    assert "No answers were saved" in lead.get(f"/evaluations/{entry.id}/answers").text


def test_everything_on_the_pages_is_escaped(lead, evaluated):
    number = saved(evaluated)
    for path in ("answers", "answers/q%2F1", "label"):
        page = lead.get(f"/evaluations/{number}/{path}").text
        assert "<script>alert" not in page
    assert page.count("&lt;script&gt;") or "How old" in page


# ---- verdicts without those of others


def key_of(page):
    return re.search(r'name="key" value="(\w+)"', page.text)[1]


def test_each_item_is_shown_until_all_have_a_verdict(lead, evaluated):
    address = f"/evaluations/{saved(evaluated, (TWO_ITEMS,))}/label"
    assert "1 of 2 items" in lead.post(address, data={"key": key_of(lead.get(address)), "label": "supported"}).text
    page = lead.post(address, data={"key": key_of(lead.get(address)), "label": "not stated"})
    assert "You have judged all 2 items" in page.text
    assert [verdict.label for verdict in verdicts_of(evaluated)] == ["supported", "not stated"]
    # The last verdict can be changed, and counts.
    key = verdicts_of(evaluated)[1].key
    again = lead.get(address, params={"item": key})
    assert re.search(r'value="not stated"[^>]*aria-pressed="true"', again.text)
    lead.post(address, data={"key": key, "label": "supported"})
    with VerdictStore(evaluated.file.store) as store:
        assert store.labels("Lea")[key] == "supported"
    assert lead.get(address, params={"item": "none"}).status_code == 404


def test_verdicts_of_other_judges_are_neither_shown_nor_counted(lead, evaluated):
    number = saved(evaluated, judge="small")
    page = lead.get(f"/evaluations/{number}/label")
    assert re.search(r"\b0 of \d+ items", page.text)
    assert "aria-pressed" not in page.text
    assert "small" not in page.text


def test_an_item_that_was_corrected_in_sight_is_still_to_be_judged(lead, evaluated):
    number = saved(evaluated)
    address = f"/evaluations/{number}/answers/q%2F1"
    lead.post(address, data={"key": key_of(lead.get(address)), "label": "not stated"})
    page = lead.get(f"/evaluations/{number}/label").text
    assert re.search(r"\b0 of \d+ items", page)
    assert "aria-pressed" not in page


def test_a_person_chooses_relations_and_sees_the_conversation_and_the_passages(lead, evaluated):
    turns = (("user", f"Tell me of it. {EVIL}"), ("assistant", "Of what?"))
    number = saved(evaluated, (replace(RECORDS[0], history=turns),))
    page = lead.get(f"/evaluations/{number}/label", params={"relation": "answerability"}).text
    assert "Can the collection answer the question?" in page
    assert page.index("Tell me of it.") < page.index("Of what?") < page.index("How high")
    assert page.index("How high") < page.index("The tower is red.")


@pytest.mark.parametrize(("key", "label"), [(None, "perhaps"), ("f" * 64, "supported"), ("", "")])
@pytest.mark.parametrize("path", ["label", "answers/q%2F1"])
def test_an_invalid_verdict_is_not_stored(lead, evaluated, key, label, path):
    address = f"/evaluations/{saved(evaluated)}/{path}"
    done = lead.post(address, data={"key": key_of(lead.get(address)) if key is None else key, "label": label})
    assert done.status_code == 400
    assert "The verdict was not stored" in done.text
    assert verdicts_of(evaluated) == []


def test_a_judge_reaches_the_answers_to_judge_from_the_start_page(evaluated):
    saved(evaluated)
    client = TestClient(evaluation_app(evaluated), base_url=ORIGIN)
    sign_in(client, evaluated.judging, "Ann", "judge")
    address = re.search(r'href="(/evaluations/\d+/label)"', client.get("/").text)[1]
    assert client.get(address).status_code == 200
    assert client.get(address.replace("label", "answers")).status_code == 403


@pytest.mark.slow
def test_a_person_labels_by_keys_in_a_browser(served, evaluated):
    number = saved(evaluated, (TWO_ITEMS,))
    page = served(evaluated.judging, evaluations=evaluated).sign_in("Ann", "judge")
    page.get_by_role("link", name="Judge generated answers").click()
    for done, key in enumerate("13"):
        page.get_by_text(f"{done} of 2 items").wait_for()
        page.locator("html[data-keys]").wait_for()
        page.keyboard.press(key)
    page.get_by_text("You have judged all 2 items").wait_for()
    page.locator("html[data-keys]").wait_for()
    page.keyboard.press("z")
    page.locator("[aria-pressed=true]").wait_for()
    page.locator("html[data-keys]").wait_for()
    page.keyboard.press("2")
    page.get_by_text("You have judged all 2 items").wait_for()
    assert page.url.endswith(f"/evaluations/{number}/label?last={verdicts_of(evaluated, 'Ann')[-1].key}")
    assert [verdict.label for verdict in verdicts_of(evaluated, "Ann")] == ["supported", "not stated", "contradicted"]


# ---- settings, a backup, and names of judges


def test_settings_show_the_project_file_and_a_backup_can_be_restored(evaluated, tmp_path):
    client = TestClient(evaluation_app(evaluated), base_url=ORIGIN)
    sign_in(client, evaluated.judging, "Ada", "admin")
    page = client.get("/settings").text
    assert "[retrievers.old]" in page
    assert "judgments" in page
    path = tmp_path / "backup.zip"
    done = client.post("/settings/backup", headers={"X-CSRF-Token": token_of(client)})
    path.write_bytes(done.content)
    with WholeStore(tmp_path / "restored.db") as restored:
        assert restored.restore(path)["evaluations"] == 2


@pytest.mark.parametrize("allowed", [False, True])
def test_readers_see_names_of_judges_only_if_the_project_file_allows_it(evaluated, allowed):
    file = evaluated.file.path
    file.write_text(("judge_names = true\n" if allowed else "") + file.read_text())
    project = Project(file)
    with project.judging, project.evaluations:
        lead = project.judging.add_judge("Leah Lead", role="lead")[0]
        project.judging.grade(lead.id, "q1", "d7", 1)
        client = TestClient(evaluation_app(project), base_url=ORIGIN)
        sign_in(client, project.judging, "Rea", "reader")
        page = client.get("/compare/q1", params={"a": 1, "b": 2, "doc": "d7"}).text
        assert "grade 1" in page
        assert ("Leah" in page, "a judge" in page) == (allowed, not allowed)
