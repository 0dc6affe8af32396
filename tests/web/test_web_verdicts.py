"""The page for human verdicts: blind, by keyboard, one verdict for one item."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from rankgauge.answers import AnswerRecord, Context, Verdict, VerdictStore, items_of, sentence_claims
from rankgauge.web import verdict_app

ORIGIN = "http://testserver"
EVIL = '<script>alert("1")</script>'
RECORD = AnswerRecord(
    "q1", f"How high? {EVIL}", f"It is 5 m high. It is new. {EVIL} is so.", (Context("d1", f"5 m {EVIL}"),), "5 m high."
)
ITEMS = [item for item in items_of(RECORD, sentence_claims(RECORD)) if item.relation == "answer-context"]
KEYS = sorted(item.key for item in ITEMS)


@pytest.fixture
def store(tmp_path):
    with VerdictStore(tmp_path / "v.db") as made:
        made.create()
        yield made


@pytest.fixture
def client(store):
    app = verdict_app(ITEMS, {"q1": RECORD}, store, person="ann", secret="s3cret")
    with TestClient(app, base_url=ORIGIN) as client:
        yield client


def key_of(page):
    return re.search(r'name="key" value="(\w+)"', page.text)[1]


def give(client, key, label, **headers):
    return client.post("/s3cret/", data={"key": key, "label": label}, headers=headers)


def test_each_item_is_shown_until_all_have_a_verdict(client, store):
    page = client.get("/s3cret/")
    for number, _ in enumerate(ITEMS):
        assert f"{number} of {len(ITEMS)} items" in page.text
        page = give(client, key_of(page), "supported")
    assert f"All {len(ITEMS)} items have a verdict" in page.text
    assert [(v.key, v.label, v.judge) for v in store.verdicts()] == [(key, "supported", "ann") for key in KEYS]


def test_a_person_sees_the_conversation_and_the_passages_found(store):
    turns = (("user", f"Tell me of it. {EVIL}"), ("assistant", "Of what?"))
    record = replace(RECORD, history=turns)
    items = [each for each in items_of(record, sentence_claims(record)) if each.relation == "answerability"]
    app = verdict_app(items, {"q1": record}, store, person="ann")
    with TestClient(app, base_url=ORIGIN) as client:
        page = client.get("/").text
    assert "Can the collection answer the question?" in page
    assert "5 m &lt;script&gt;" in page
    assert page.index("Tell me of it.") < page.index("Of what?") < page.index("How high?")
    assert EVIL not in page


def test_verdicts_of_other_judges_are_neither_shown_nor_counted(client, store):
    store.add([Verdict(key, "contradicted", "model", quote="secret quote") for key in KEYS])
    page = client.get("/s3cret/")
    assert f"0 of {len(ITEMS)} items" in page.text
    assert "aria-pressed" not in page.text
    assert "secret quote" not in page.text
    assert "model" not in page.text


def test_a_verdict_can_be_changed_and_the_last_one_counts(client, store):
    page = give(client, KEYS[0], "supported")
    assert f"?item={KEYS[0]}" in page.text
    again = client.get(f"/s3cret/?item={KEYS[0]}")
    assert re.search(r'value="supported"[^>]*aria-pressed="true"', again.text)
    give(client, KEYS[0], "not stated")
    assert store.labels("ann") == {KEYS[0]: "not stated"}
    assert len(store.verdicts()) == 2


def test_everything_on_the_page_is_escaped(client):
    text = "".join(client.get(f"/s3cret/?item={key}").text for key in KEYS)
    assert "<script>alert" not in text
    assert text.count("&lt;script&gt;") >= len(KEYS)


@pytest.mark.parametrize(
    ("key", "label", "origin"),
    [
        (KEYS[0], "perhaps", ORIGIN),
        ("f" * 64, "supported", ORIGIN),
        ("", "", ORIGIN),
        (KEYS[0], "supported", "http://elsewhere.example"),
    ],
)
def test_an_invalid_verdict_is_not_stored(client, store, key, label, origin):
    done = give(client, key, label, origin=origin)
    assert done.status_code == 400
    assert "The verdict was not stored" in done.text
    assert store.verdicts() == []


def test_without_the_secret_there_is_no_page(client):
    assert client.get("/").status_code == 404
    assert client.get("/s3cret/?item=none").status_code == 404


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_a_person_labels_by_keys_in_a_browser(chromium, tmp_path):
    import json

    rows = [
        {
            "id": "q1",
            "question": "How high?",
            "answer": RECORD.answer,
            "reference": "5 m high.",
            "contexts": [{"id": "d1", "text": "The tower is 5 m high."}],
        }
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["answers", "label", "a.jsonl", "--store", "v.db", "--person", "ann", "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "rankgauge", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    try:
        link = re.search(r"http://\S+", (process.stderr.readline() or ""))[0]
        for width, scheme in ((1280, "light"), (390, "dark")):
            context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
            page = context.new_page()
            page.goto(link)
            page.screenshot(path=tmp_path / f"verdict-{width}.png", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            context.close()
        page = chromium.new_page()
        page.goto(link)
        for number in range(4):
            page.get_by_text(f"{number} of 4 items").wait_for()
            page.locator("html[data-keys]").wait_for()
            page.keyboard.press("12"[number % 2])
        page.get_by_text("All 4 items have a verdict").wait_for()
        page.locator("html[data-keys]").wait_for()
        page.keyboard.press("z")
        page.locator("[aria-pressed=true]").wait_for()
        page.locator("html[data-keys]").wait_for()
        page.keyboard.press("3")
        page.get_by_text("All 4 items have a verdict").wait_for()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    with VerdictStore(tmp_path / "v.db") as store:
        assert [v.label for v in store.verdicts("ann")] == [
            "supported",
            "contradicted",
            "supported",
            "contradicted",
            "not stated",
        ]
