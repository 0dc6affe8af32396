"""Differences between runs, in formats for people and programs."""

import csv
import io
import json

import pytest

import rankgauge
from rankgauge import Collection, Run, UnknownName, diff
from rankgauge.reports import Options, render

SAMPLE = rankgauge.sample_path("qrels.txt").parent
BM25, KEYWORD = (rankgauge.sample_path(f"runs/{name}.run") for name in ("bm25", "keyword"))
FULL = Options(full=True)
FOUND = diff(SAMPLE / "qrels.txt", BM25, KEYWORD, collection=SAMPLE, n=2, k=5)
TEXTS = Collection.of(
    {"d1": {"title": "a | <script>alert(1)</script> \x1b[2J", "text": ""}, "d2": "=1+1"},
    {"q1": "what <b>is</b> *it*?\x07"},
)
HOSTILE = diff(
    {"q1": {"d1": 1}},
    Run.of({"q1": ["d1", "d2"]}, name="<old>"),
    Run.of({"q1": ["d2", "d1"]}, name="=new"),
    collection=TEXTS,
)


def test_a_terminal_shows_the_queries_then_both_rankings():
    lines = render(FOUND, "table", FULL).splitlines()
    assert lines[0] == "bm25 → keyword by nDCG@10"
    assert [line.split()[0] for line in lines[3:7]] == ["q23", "q26", "q30", "q19"]
    assert "• nDCG@10 1.0000 → 0.3032 (-0.6968), first relevant 1 → 4, RBO 0.1996" in lines
    heads = [line.split() for line in lines if line.startswith("rank")]
    assert heads == 4 * [["rank", "bm25", "grade", "now", "keyword", "grade", "was"]]


def test_a_short_report_of_many_queries_has_no_rankings():
    text = render(FOUND)
    assert "--query ID shows both rankings" in text
    assert "q23, q26, 2 more tables, 1 more note hidden; show with --full" in " ".join(text.split())
    assert not any(line.startswith("rank") for line in text.splitlines())
    assert text.count("\n") <= 20


def test_grades_and_moves_are_letters_not_colours():
    text = render(FOUND, "table", FULL)
    first = next(line for line in text.splitlines() if "maker-3d-printing" in line)
    assert first.split() == ["1", "maker-3d-printing", "3", "↓", "4", *first.split()[5:]]
    assert first.split()[5:] == ["visiting-house-rules", "0", "new"]
    assert "• relevant, left the top 5: maker-induction (grade 2, gone)" in text
    assert "\x1b" not in text
    assert "\x1b[1m" in render(FOUND, "table", Options(color=True, full=True))


def test_lines_are_at_most_80_characters_wide():
    wide = Collection.of({"d1": "長い題名" * 40, "d2": "word " * 99}, {"q1": "asked " * 60})
    names = [f"a-run-with-quite-a-long-name-{n}" for n in range(2)]
    runs = [Run.of(r, name=n) for r, n in zip(({"q1": ["d1", "d2"]}, {}), names, strict=True)]
    runs[1] = Run.of({"q1": ["d2", "d" * 300, "d1"]}, name=names[1])
    for found in (FOUND, HOSTILE, diff({"q1": {"d1": 1}}, *runs, collection=wide)):
        text = render(found, "table", FULL)
        assert max(map(len, text.splitlines())) <= 80
    assert "ddd…ddd" in text


def test_a_title_is_below_its_id():
    lines = render(FOUND, "table", FULL).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("   1   maker-3d-printing"))
    assert lines[at + 1].split("  ")[-1].strip() == "House rules"


def test_control_characters_are_escaped_in_every_form():
    for form in ("table", "markdown", "html", "csv", "json"):
        text = render(HOSTILE, form)
        assert "\x1b" not in text
        assert "\x07" not in text
    assert "\\x1b[2J" in render(HOSTILE, "html")


def test_html_and_markdown_escape_what_texts_hold():
    page = render(HOSTILE, "html")
    assert "<script" not in page
    assert "<old>" not in page
    assert "&lt;script&gt;" in page
    text = render(HOSTILE, "markdown")
    assert "**q1: what \\<b>is\\</b> \\*it\\*?\\\\x07**" in text
    assert "a \\| \\<script>" in text


def test_markdown_marks_relevant_grades_and_cuts_nothing():
    text = render(FOUND, "markdown")
    assert "maker-3d-printing" in text
    assert "3D printing: files, prices and times" in text
    assert "| **3** | ↓ 4  |" in text
    assert "…" not in text


def test_csv_has_a_line_for_each_judged_query():
    rows = list(csv.reader(io.StringIO(render(FOUND, "csv"))))
    assert len(rows) == 31
    assert rows[0][:4] == ["query", "bm25", "keyword", "change"]
    assert float(rows[23][3]) == FOUND.query("q23").change
    assert render(HOSTILE, "csv").startswith("query,<old>,'=new,")


def test_json_is_one_document_with_all_queries_and_the_rankings_shown():
    data = json.loads(render(FOUND, "json"))
    assert len(data["queries"]) == 30
    assert [query["query"] for query in data["shown"]] == ["q23", "q26", "q30", "q19"]
    assert len(data["shown"][0]["rankings"][0]) == 5


def test_missing_parts_are_noted():
    found = diff(
        {"q1": {"d1": 1}, "q2": {"d1": 1}},
        Run.of({"q1": ["d1"], "q2": []}, name="old"),
        Run.of({"q2": ["d1"]}, name="new"),
    )
    text = render(found)
    assert "• the query is not in new: an empty ranking" in text
    assert "• old retrieved nothing" in text


def test_without_a_change_there_is_no_query_to_show():
    found = diff(SAMPLE / "qrels.txt", BM25, BM25)
    assert "• no query changed its nDCG@10" in render(found)
    assert "• no query to show" in render(diff(SAMPLE / "qrels.txt", BM25, KEYWORD, n=0))


def test_an_unknown_form_is_refused():
    with pytest.raises(UnknownName, match="unknown format 'yaml'"):
        render(FOUND, "yaml")
