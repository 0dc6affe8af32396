"""Diagnoses as text: every format, legibility, and escaping."""

import csv
import io
import json
from pathlib import Path

import pytest

from rankgauge import Collection, UnknownName, diagnose, sample_path
from rankgauge.diagnosis import CAUSES
from rankgauge.reports import Options, render

FOLDER = sample_path("qrels.txt").parent
SAMPLE = diagnose(FOLDER / "qrels.txt", FOLDER / "runs/bm25.run", Collection.read(FOLDER), group_by="type")
EVIL = "<script>alert(1)</script>"
PLAIN = diagnose(FOLDER / "qrels.txt", FOLDER / "runs/bm25.run", Collection.read(FOLDER))
HOSTILE = diagnose(
    {"q": {"=d": 1, EVIL: 1}},
    {"q": ["x", "y", "z"]},
    Collection.of({"=d": EVIL, EVIL: "a", "x": "x", "y": "y", "z": "z"}, {"q": EVIL}),
    k=2,
)


def test_every_section_is_present_in_reading_order():
    text = render(SAMPLE, "table", Options(full=True))
    heads = (
        "Diagnosis of bm25: quality",
        "both are low:",
        "rule of thumb",
        "likely causes of 24 of 30 queries, first: vocabulary gap",
        "potential gain",
        "suggested fixes\n",
        "other cut-offs",
        "a threshold on the score",
        "distribution over queries",
        "groups of queries",
        "too few",
        "q03 “my tablet",
    )
    places = [text.index(head) for head in heads]
    assert places == sorted(places)
    assert "\x1b" not in text


def test_what_decides_fits_a_page_and_the_rest_is_named():
    text = render(PLAIN)
    assert text.count("\n") <= 32
    heads = ("quality", "both are low:", "likely causes of", "suggested fix: ", "--full")
    places = [text.index(head) for head in heads]
    assert places == sorted(places)
    for head in ("other cut-offs\n", "score at least", "distribution over", "groups of queries"):
        assert head not in text
    assert max(map(len, text.splitlines())) <= 80


def test_nothing_of_the_page_is_lost_in_full():
    every = render(PLAIN, "table", Options(full=True)).splitlines()
    short = render(PLAIN).split("\n•", 2)[0].splitlines()
    assert set(short) <= set(every)


def test_means_by_a_field_are_shown_since_they_were_asked_for():
    found = diagnose(FOLDER / "qrels.txt", FOLDER / "runs/bm25.run", Collection.read(FOLDER), group_by="type")
    rows = [line.split() for line in render(found).split("groups of queries\n")[1].split("\n")]
    assert [row[1] for row in rows[2:5]] == ["how-to", "policy", "problem"]
    assert rows[5] == []


def test_bands_are_shown_with_attainable_values():
    (line,) = (x for x in render(SAMPLE).splitlines() if x.startswith("P@5  "))
    assert line.split() == ["P@5", "0.2800", "Poor", "0.5267", "Good"]
    assert "P@5 cannot exceed 0.53 (Good) with these judgments" in render(SAMPLE, "table", Options(full=True))


def test_the_evidence_of_a_query_follows_it():
    block = render(SAMPLE, "table", Options(full=True)).split("q03 “")[1].split("\n\n")
    lines = block[0].splitlines()
    (at,) = (n for n, line in enumerate(lines) if line.startswith("ebooks-expiry"))
    assert lines[at].split()[:3] == ["ebooks-expiry", "3", "–"]
    said = " ".join(" ".join(lines[at : at + 2]).split())
    assert "no term of the query in it; not among the 15 retrieved" in said
    assert "query terms: tablet, says, title, run, finished" in " ".join(block[1].split())
    assert "primary cause: vocabulary gap; suggested fix: add semantic search (lexical) or" in block[1]


def test_nothing_is_wider_than_80_columns():
    lines = render(SAMPLE, "table", Options(full=True)).splitlines()
    assert max(map(len, lines)) <= 80


def test_only_so_many_queries_are_shown_as_asked():
    few = diagnose(FOLDER / "qrels.txt", FOLDER / "runs/bm25.run", worst=0)
    assert "relevant in the first 5\n" not in render(few, "table", Options(full=True))
    assert "no texts of documents were given" in " ".join(render(few).split())


def test_csv_has_every_missed_document_with_its_causes():
    rows = list(csv.DictReader(io.StringIO(render(SAMPLE, "csv"))))
    missed = [(one.query_id, doc.doc_id) for one in SAMPLE.diagnoses for doc in one.missed]
    assert [(row["query"], row["document"]) for row in rows if row["document"]] == missed
    names = {cause.name for cause in CAUSES}
    for row in rows:
        assert set(filter(None, row["causes"].split("; "))) <= names


def test_texts_are_escaped_and_formulas_defused():
    html = render(HOSTILE, "html")
    assert EVIL not in html
    assert "&lt;script&gt;" in html
    assert "'=d" in render(HOSTILE, "csv")
    assert EVIL not in render(HOSTILE, "markdown")


@pytest.mark.parametrize("form", ["table", "markdown", "html", "csv", "json"])
@pytest.mark.parametrize(
    "found",
    [
        SAMPLE,
        HOSTILE,
        diagnose({"q": {"d"}}, {"q": ["d"]}),
        diagnose({"q": {"d": 1}, "r": {"d": 0}}, {"q": []}, measure="AP"),
        diagnose({"q": {"d": 3}}, {"q": ["x", "d"]}, measure="DCG@10", k=1),
    ],
    ids=["sample", "hostile", "perfect", "empty", "unbounded"],
)
@pytest.mark.parametrize("full", [False, True])
def test_every_form_ends_with_one_line_feed(found, form, full):
    text = render(found, form, Options(full=full))
    assert text.endswith("\n")
    assert "nan" not in text.lower().replace("finance", "")
    if form == "json":
        assert json.loads(text)["schema"] == "rankgauge/diagnosis/1"


def test_an_unknown_form_shows_the_nearest():
    with pytest.raises(UnknownName, match="markdown"):
        render(SAMPLE, "markdwn")


def test_the_page_has_every_cause_with_its_rule():
    page = Path(__file__).parents[2] / "docs" / "howto" / "diagnose.md"
    if not page.exists():
        pytest.skip("there are no pages beside these tests")
    text = page.read_text(encoding="utf-8")
    rows = "".join(f"| {c.name} | {c.of} | {c.rule} | {c.fix} |\n" for c in CAUSES)
    assert rows in text
