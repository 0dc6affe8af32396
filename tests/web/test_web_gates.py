"""Pages of gates, and results that CI sends: malformed, huge, twice, with tokens of others."""

import json
import re
from dataclasses import replace

import pytest
from evaluated_project import RECORDS, evaluation_app, save_answers
from judging_pages import ORIGIN, sign_in
from starlette.testclient import TestClient

from rankgauge import Baseline, gate
from rankgauge.gates import GateCheck, GateResult
from rankgauge.store import Gates

WEEK = "2026-01-0{}T10:00:00+00:00"


@pytest.fixture
def gates(evaluated):
    return Gates(evaluated.file.store)


@pytest.fixture
def result(evaluated):
    """The result of a gate of the saved runs."""
    saved = evaluated.evaluations
    baseline = Baseline.from_run(evaluated.judgments, saved.run(1))
    made = gate(evaluated.judgments, saved.run(2), baseline=baseline)
    return replace(made, time=WEEK.format(5), commit="0123456789abcdef", dirty=True)


@pytest.fixture
def reader(evaluated):
    client = TestClient(evaluation_app(evaluated), base_url=ORIGIN)
    sign_in(client, evaluated.judging, "Rea", "reader")
    return client


@pytest.fixture
def send(evaluated):
    """Send a body as the application "nightly", without a session."""
    client = TestClient(evaluation_app(evaluated), base_url=ORIGIN)
    own = evaluated.judging.add_judge("nightly", kind="application")[1]

    def post(body, token=own, **headers):
        return client.post("/gates", content=body, headers={"Authorization": f"Bearer {token}", **headers})

    return post


def shown(page):
    """Return the text of each cell of the first table."""
    rows = re.findall(r"<tr>(<th scope=.row.*?)</tr>", page.text, re.DOTALL)
    return [[re.sub("<[^>]+>|&nbsp;", "", cell).strip() for cell in re.split("</t[hd]>", row)] for row in rows]


def test_without_results_the_page_says_what_adds_one(reader):
    page = reader.get("/gates").text
    assert "when the person who runs this server compares a run with the baseline" in page
    assert "rankgauge gate" not in page


def test_results_are_listed_newest_first_with_what_they_are_from(gates, result, reader, send):
    gates.add(result.to_json())
    for day, verdict in ((7, "PASS"), (3, "FAIL")):
        check = GateCheck("contract", "q1", verdict, "it has one")
        assert send(GateResult(f"run {day}", (check,), time=WEEK.format(day)).to_json()).status_code == 201
    rows = shown(reader.get("/gates"))
    assert [row[0] for row in rows] == ["▲PASS", "◆INCONCLUSIVE", "▼FAIL"]
    assert [row[2] for row in rows] == ["run 7", "new", "run 3"]
    assert [row[7] for row in rows] == ["CI, nightly", "local", "CI, nightly"]
    assert rows[1][3:7] == ["baseline nDCG@10", "-0.136", "-0.360 and +0.392", "0.02"]
    assert rows[1][8] == "01234567*"


def test_each_loss_leads_to_its_comparison_to_its_query_or_nowhere(gates, result, evaluated, reader):
    number = iter(range(1, 4))

    def links(made):
        gates.add(made.to_json())
        losses = reader.get(f"/gates/{next(number)}").text.partition("Largest losses")[2]
        return [re.search('href=.([^"]+)', row) for row in re.findall("<tr><th scope=.row..*?</th>", losses)]

    numbers = result.checks[0].numbers
    compared = links(result)
    assert len(compared) == len(numbers.losers)
    for link, lost in zip(compared, numbers.losers, strict=True):
        assert link[1].startswith(f"/compare/{lost.query}?a=1&amp;b=2")
        assert reader.get(link[1].replace("&amp;", "&")).status_code == 200

    def changed(**changes):
        return replace(result, checks=(replace(result.checks[0], numbers=replace(numbers, **changes)),))

    of_others = links(changed(baseline_fingerprint="0" * 16))
    assert [link[1] for link in of_others] == [f"/queries/{lost.query}" for lost in numbers.losers]
    unknown = tuple(replace(lost, query=f"other {lost.query}") for lost in numbers.losers)
    assert links(changed(losers=unknown, fingerprint="")) == [None] * len(unknown)


def test_a_result_has_an_address_and_json(gates, result, reader):
    gates.add(result.to_json())
    answer = reader.get("/gates/1?format=json")
    assert GateResult.from_json(answer.text) == result
    assert "Gate of <bdi>new</bdi>" in reader.get("/gates/1").text
    for number in ("2", "x", "-1", "9" * 30):
        assert reader.get(f"/gates/{number}").status_code == 404


def test_a_result_is_stored_once_however_often_it_is_sent(gates, result, send):
    text = result.to_json()
    same = json.dumps(json.loads(text), indent=1)
    assert [send(body).status_code for body in (text, text, same)] == [201, 200, 200]
    assert gates.count() == 1
    assert send(replace(result, commit="another").to_json()).json() == {"stored": True}
    assert not gates.add(text)  # a local one is the same, too


def test_a_token_of_a_person_of_nobody_or_of_a_page_of_others_stores_nothing(gates, result, send, evaluated):
    text, judging = result.to_json(), evaluated.judging
    person = judging.add_judge("Ann")[1]
    public = judging.add_judge("shop", kind="application", origins=["https://shop.example"])[1]
    for token, status in (("", 401), ("wrong", 401), (person, 401), (public, 403)):
        answer = send(text, token)
        assert answer.status_code == status
        assert answer.json()["fix"]
    assert send(text, Origin="https://evil.example").status_code == 403
    judging.revoke(next(each.id for each in judging.judges.values() if each.name == "nightly"))
    assert send(text).status_code == 401
    assert gates.count() == 0


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"7", b"\x00", b"\xff", b"[" * 100_000, b"{}", b'{"schema": 7}'])
def test_what_is_no_result_is_refused(gates, send, body):
    answer = send(body)
    assert answer.status_code == 400
    assert "rankgauge gate --json" in answer.json()["fix"]
    assert gates.count() == 0


def test_a_huge_body_is_refused(send):
    assert send(b" " * 1_000_001).status_code == 413


def test_hostile_texts_and_a_time_in_the_future_do_no_harm(gates, send, reader):
    script = "<script>alert(1)</script>"
    check = GateCheck("floor", script, "FAIL", script, script)
    made = GateResult(script, (check,), (script,), (script,), time="2999-01-01T00:00:00+00:00", commit=script)
    assert send(made.to_json()).status_code == 201
    for path in ("/gates", "/gates/1"):
        page = reader.get(path)
        assert page.status_code == 200
        assert "<script" not in page.text
    assert gates.result(1).time < "2999"


def test_losses_of_answers_lead_to_the_answers(evaluated, gates, reader):
    """The second system has other answers to the same questions."""
    worse = tuple(replace(record, answer="Perhaps.") for record in RECORDS)
    numbers = [save_answers(evaluated, RECORDS), save_answers(evaluated, worse)]
    before, after = (evaluated.evaluations.load(number) for number in numbers)
    rules = {"measures": {"TokenF1": {"margin": 0.02}}}
    gates.add(gate(after, rules=rules, baseline=Baseline.from_evaluation(before)).to_json(), author="local")
    page = reader.get("/gates/1").text
    assert f"/evaluations/{numbers[1]}/answers/" in page
