"""The HTML report in one file: complete, offline, correct numbers, usable."""

import base64
import hashlib
import json
import math
import re
import sys
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from browser import Tab

import rankgauge
from rankgauge import Collection, InputError, MissingExtra, UnknownName, html_report
from rankgauge.rendering.plot_drawing import PAGE_COLORS
from rankgauge.rendering.tables import Table
from rankgauge.reports import Details, Section

FOLDER = rankgauge.sample_path("qrels.txt").parent
QRELS = FOLDER / "qrels.txt"
RUNS = [FOLDER / "runs" / "bm25.run", FOLDER / "runs" / "keyword.run"]
VOID = {"area", "br", "hr", "img", "input", "link", "meta", "rect", "use", "path", "circle"}
EVIL = '</script><script>alert("1")</script><img src=x onerror=alert(1)>\'&\u202e\x01'


class Page(HTMLParser):
    """The elements of a page; fails if an element is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip() and self.open[-1:] not in (["script"], ["style"]):
            self.texts.append(" ".join(data.split()))

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def text(self):
        return " ".join(self.texts)


@pytest.fixture(scope="module")
def whole():
    return html_report(QRELS, RUNS, collection=FOLDER, date="2024-05-01")


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    opened = Tab(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


# ---- the file


@pytest.mark.slow
def test_the_page_is_well_formed_and_its_parts_are_named_once(whole):
    page = Page(whole)
    assert whole.startswith("<!DOCTYPE html>\n<html lang=")
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for attrs in page.all("a"):
        assert attrs["href"].removeprefix("#") in ids
    for _, attrs in page.elements:
        for name in ("aria-labelledby",):
            assert attrs.get(name, ids[0]) in ids
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_page_asks_for_nothing_and_forbids_it(whole):
    page = Page(whole)
    policy = next(a["content"] for a in page.all("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none';")
    for tag, attrs in page.elements:
        assert tag not in {"iframe", "object", "embed", "form", "base"}
        for name, value in attrs.items():
            assert not name.startswith("on")
            if name in {"src", "href", "xlink:href", "action", "srcset", "poster", "data"}:
                assert value.startswith(("#", "data:,"))
    assert "@import" not in whole
    assert re.findall(r"url\((?!#)", whole) == []
    elsewhere = set(re.findall(r"https?://[^\s\"'<]+", whole))
    assert elsewhere <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_only_the_script_of_the_page_may_run(whole):
    found = re.findall(r"(?s)<script>(.*?)</script>", whole)
    assert len(found) == 1
    digest = hashlib.sha256(found[0].encode()).hexdigest()
    named = re.search(r"script-src 'sha256-([^']+)'", whole)[1]
    assert base64.b64decode(named).hex() == digest


def test_the_same_input_gives_the_same_bytes(whole):
    assert html_report(QRELS, RUNS, collection=FOLDER, date="2024-05-01") == whole
    without = html_report(QRELS, RUNS, plots=False)
    assert "2024" not in without.replace("20242", "")


def test_two_runs_of_the_sample_take_little_room(whole):
    assert len(whole.encode()) < 700_000


# ---- content


def test_it_has_the_sentences_of_the_comparison(whole):
    comparison = rankgauge.compare(QRELS, RUNS)
    text = Page(whole).text
    # With two runs, the difference says which one is better.
    for said in (*comparison.sentences[1:], *comparison.warnings):
        assert said in text
    (tested,) = (d for d in comparison.differences if d.corrected is not None)
    assert f"p (Holm) = {tested.corrected:.4f}" in text
    for evaluation in comparison.evaluations:
        for value in evaluation.mean().values():
            assert f"{value:.4f}" in text
    for found in comparison.differences:
        assert found.interval_text() in text


def test_it_records_how_it_was_made(whole):
    text = Page(whole).text
    assert hashlib.sha256(QRELS.read_bytes()).hexdigest() in text
    assert hashlib.sha256(RUNS[1].read_bytes()).hexdigest() in text
    seed = str(rankgauge.compare(QRELS, RUNS).design.seed)
    for said in (rankgauge.__version__, "2024-05-01", "randomization", "Holm", seed, "10,000"):
        assert said in text
    for note in rankgauge.evaluate(QRELS, RUNS[0]).notes[:1]:
        assert note in text
    assert str(FOLDER) not in whole


def values_of(page):
    return json.loads(re.search(r'(?s)id="values">(.*?)</script>', page)[1])


def test_all_values_are_in_the_page_rounded_as_they_are_shown(whole):
    data = values_of(whole)
    evaluations = rankgauge.compare(QRELS, RUNS).evaluations
    assert data["measures"] == [str(m) for m in evaluations[0].measures]
    for number, measure in enumerate(data["measures"]):
        for run, evaluation in enumerate(evaluations):
            for place, query in enumerate(data["queries"]):
                value = evaluation.value(query, measure)
                shown = data["values"][number][run][place]
                assert f"{shown / 10_000:.4f}" == f"{value:.4f}"
                apart = data["values"][number][2][place]
                base = evaluations[0].value(query, measure)
                if run == 1:
                    assert apart == pytest.approx((value - base) * 10_000, abs=0.5 + 1e-6)


@pytest.mark.slow
def test_of_very_many_values_those_of_the_primary_measure_are_in_the_page():
    queries = [f"query {n}" for n in range(7_000)]
    qrels = {q: {"d": 1} for q in queries}
    runs = {
        name: {q: ["x"] * 0 + (["d"] if n % step else ["x", "d"]) for n, q in enumerate(queries)}
        for name, step in {"a": 2, "b": 3, "c": 5, "d": 7}.items()
    }
    page = html_report(qrels, runs, plots=False)
    assert values_of(page)["measures"] == ["nDCG@10"]
    assert "of nDCG@10 only" in Page(page).text
    assert len(page) < 10_000_000
    assert "queries left out: the page would be larger than 10 MB" in page


def test_each_query_leads_to_its_rankings_with_texts(whole):
    data = values_of(whole)
    assert sorted(data["detailed"]) == [*range(30)]
    for place in data["detailed"]:
        assert whole.count(f'id="query-{place}"') == 1
    text = Collection.read(FOLDER).documents["loans-returning"].text
    assert " ".join(text.split())[:100] in Page(whole).text


def test_queries_to_look_at_are_those_of_a_plain_count():
    qrels = {f"q{n}": {"d": 1} for n in range(30)}
    old = {f"q{n}": ["d"] if n % 3 else ["x", "d"] for n in range(30)}
    new = old | {"q4": ["x", "y", "d"], "q7": ["x", "d"], "q3": ["d"], "q9": ["x", "y", "z", "d"]}
    page = Page(html_report(qrels, {"old": old, "new": new}, "RR", plots=False))
    text = page.text[page.text.rindex("Largest losses") :]
    lost = text[text.index("Largest losses") : text.index("Hard for every run")]
    # Losses: q4 by 2/3, q7 by 1/2, q9 by 1/4.
    assert re.findall(r"q\d+", lost[: lost.index("RR")])[0] == "q4"
    assert list(dict.fromkeys(re.findall(r"\bq\d+\b", lost))) == ["q4", "q7", "q9"]
    hard = text[text.index("Hard for every run") : text.index("Other queries")]
    # Both below their means: every third query has .5, but q3 (better now) and q9 (lost).
    assert (
        list(dict.fromkeys(re.findall(r"\bq\d+\b", hard))) == [f"q{n}" for n in range(0, 30, 3) if n not in {3, 9}][:8]
    )


def test_a_query_opens_on_its_rankings_with_grades_texts_and_what_was_missed():
    qrels = {"q1": {"good": 2, "bad": 0, "missed": 1}, "q2": {"d": 1}, "q3": {"d": 1}}
    runs = {
        "old": {"q1": ["good", "bad"], "q2": ["d"], "q3": ["d"]},
        "new": {"q1": ["bad", "new", "good"], "q2": ["d"], "q3": ["d"]},
    }
    texts = rankgauge.Collection.of({"good": "The right one."}, {"q1": "what is it"})
    text = Page(html_report(qrels, runs, "RR", collection=texts, plots=False)).text
    text = text[text.index("Largest losses against old") :]
    assert "q1 what is it RR: old 1.0000, new 0.5000" in text.replace("0.3333", "0.5000")
    assert "1 grade 2 good The right one. grade 0 bad 2 grade 0 bad not judged new" in text
    assert "3 grade 2 good The right one." in text
    assert "grade 2 good The right one. 1 3 grade 1 missed not retrieved not retrieved" in text


def test_one_run_has_no_comparison():
    text = Page(html_report(QRELS, RUNS[:1], "RR", plots=False)).text
    assert re.search(r"bm25: RR is 0.7279 over 30 queries \(95% CI 0\.\d{3} to 0\.\d{3}\)", text)
    assert "Lowest values" in text
    for said in ("Differences", "baseline", "Largest losses"):
        assert said not in text


def test_what_was_made_by_other_choices_is_taken_as_it_is():
    result = rankgauge.compare(QRELS, RUNS, "AP", test="t", baseline="keyword")
    text = Page(html_report(QRELS, RUNS, result=result, plots=False)).text
    assert "two-sided, paired t, Holm-corrected" in text
    assert "baseline keyword" in text
    assert "seed" not in text
    with pytest.raises(InputError, match="measures and baseline are those of the result"):
        html_report(QRELS, RUNS, "RR", result=result)
    with pytest.raises(InputError, match="of a run 'bm25', which was not given"):
        html_report(QRELS, {"other": RUNS[0]}, result=result)
    with pytest.raises(InputError, match="which is not judged"):
        html_report({"q01": {"d"}}, RUNS, result=result)


def test_additional_sections_precede_the_footer():
    table = rankgauge.evaluate(QRELS, RUNS[0], "RR").table()
    plot = rankgauge.rendering.plot_history(["2024-01-01", "2024-02-01"], [0.5, 0.75])
    section = Section("Mine", ("A text.", table, Details("More", ("Folded.", plot))))
    whole = html_report(QRELS, RUNS, sections=[section], plots=False)
    text = Page(whole).text
    assert text.index("Mine", 300) < text.index("A text.") < text.index("Folded.")
    assert text.index("Folded.") < text.index("Results by query", 300)
    assert whole.count("<svg") == 1


def test_plots_have_words_and_tables_have_captions(whole):
    page = Page(whole)
    plots = [a for a in page.all("svg") if a.get("role") == "img"]
    assert len(plots) == 7
    assert all(len(attrs["aria-label"]) > 40 for attrs in plots)
    assert all(attrs.get("scope") in {"col", "row"} for attrs in page.all("th"))
    assert "best: " in page.text
    assert "★ best run" in page.text
    assert "‡ worse than bm25: interval and corrected p agree" in page.text


def test_differences_in_other_units_than_the_means_are_noted():
    text = Page(html_report(QRELS, RUNS, ["nDCG@10", "GMAP"], plots=False)).text
    assert "GMAP: differences are natural logarithms" in text


def test_a_table_whose_lines_belong_together_cannot_be_sorted_apart():
    lines = Table(("cure", "why"), (("one", "a"), ("", "b")), title="Tied")
    loose = Table(("cure", "why"), (("one", "a"), ("two", "b")), title="Loose")
    page = html_report(QRELS, RUNS[:1], "RR", sections=[Section("S", (lines, loose))], plots=False)
    sortable = re.findall(r"<table( data-sortable)?>\s*<caption>(Tied|Loose)", page)
    assert sortable == [("", "Tied"), (" data-sortable", "Loose")]


# ---- texts and errors


@pytest.mark.parametrize("plots", [False, True])
def test_no_text_can_become_markup(plots):
    qrels = {f"{n}{EVIL}": {f"d{EVIL}": 1} for n in range(4)}
    good = {query: [f"d{EVIL}"] for query in qrels}
    bad = {query: [f"x{EVIL}", f"d{EVIL}"] for query in qrels}
    runs = {f"good{EVIL}": rankgauge.Run.of(good, settings={EVIL: EVIL}), f"bad{EVIL}": bad}
    lone = f"{EVIL}\x00\ud800"
    section = Section(lone, (lone, Details(lone, (lone,))))
    page = html_report(qrels, runs, "RR", title=lone, date=lone, sections=[section], plots=plots)
    page.encode("utf-8")
    assert "\x00" not in page
    assert "\x01" not in page
    parsed = Page(page)
    assert len(parsed.all("script")) == 2
    assert parsed.all("img") == []
    assert "</script" not in re.search(r'(?s)id="values">(.*?)</script>', page)[1]


def test_texts_of_documents_and_queries_cannot_become_markup():
    qrels, runs = {"q1": {"d": 1}, "q2": {"d": 1}}, {"a": {"q1": ["d"], "q2": ["x", "d"]}}
    texts = rankgauge.Collection.of({"d": {"title": EVIL, "text": "t"}}, {"q1": EVIL, "q2": EVIL})
    parsed = Page(html_report(qrels, runs, "RR", collection=texts, plots=False))
    assert len(parsed.all("script")) == 2
    assert parsed.all("img") == []
    assert parsed.text.count("alert(") >= 3


@pytest.mark.parametrize("values", [None, 42, {"q1": {"d1": 1}}])
def test_a_report_without_runs_needs_evaluations(values):
    with pytest.raises(InputError, match=f"got {type(values).__name__} without runs"):
        html_report(values)


def test_errors_are_reported():
    with pytest.raises(InputError, match="expected runs"):
        html_report(QRELS, [])
    with pytest.raises(InputError, match="expected runs"):
        html_report(QRELS, str(RUNS[0]))
    with pytest.raises(InputError, match="duplicate run name 'run'"):
        html_report({"q": {"d"}}, [{"q": ["d"]}, {"q": ["d"]}])
    with pytest.raises(UnknownName, match="unknown run 'nope'"):
        html_report(QRELS, RUNS, baseline="nope")
    with pytest.raises(InputError, match="there is one run, 'bm25'"):
        html_report(QRELS, RUNS[:1], baseline="nope")
    with pytest.raises(InputError, match="no such file or folder"):
        html_report(QRELS, RUNS, collection="/nowhere")


@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        ({"q": {"d": 1}}, {"q": ["x", "d"]}),
        ({"q": {"d": 0}}, {"q": ["d"]}),
        ({1: {2: 1}, 3: {4: -1}}, {1: [2], 3: []}),
        ({"q": {"d": 1}, "p": {"d": 2}}, {"p": ["x"]}),
    ],
    ids=["one query", "nothing relevant", "ids are numbers", "nothing found"],
)
def test_small_and_odd_input_makes_a_page(qrels, run):
    page = html_report(qrels, {"mine": run}, ["nDCG@5", "NumRet"])
    assert "mine" in Page(page).text


# ---- looks


def luminance(colour):
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("number", [0, 1], ids=["light", "dark"])
def test_text_and_lines_have_enough_contrast(whole, number):
    """By the contrast formula of WCAG 2: 4.5 for text, 3 for graphics."""
    style = re.search(r"(?s)<style>(.*?)</style>", whole)[1]
    pairs = re.findall(r"(--[\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)
    colours = {name: both[number] for name, *both in pairs}
    for name in ("--ink", "--muted", "--accent", "--good"):
        assert contrast(colours[name], colours["--surface"]) >= 4.5, name
    assert contrast(colours["--ink"], colours["--warn-surface"]) >= 4.5
    assert contrast(colours["--warn"], colours["--warn-surface"]) >= 4.5
    for name in (v.removeprefix("var(").removesuffix(")") for v in PAGE_COLORS.values()):
        assert name in colours
    for series in ("--series-1", "--series-2", "--series-3", "--series-6", "--series-7"):
        assert contrast(colours[series], colours["--surface"]) >= 3, series


# ---- in a browser


@pytest.mark.slow
def test_a_browser_loads_the_file_and_nothing_else(tab, whole, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(whole, encoding="utf-8")
    tab.requests.clear()
    tab.open(path)
    assert [url for url in tab.requests if url != "data:,"] == [path.as_uri()]
    assert tab.complaints == []
    assert tab.run("fetch('https://example.org/').then(() => 'sent', () => 'refused')") == "refused"
    tab.complaints.clear()


COLUMN = "[...document.querySelectorAll('#by-query tbody tr')].map(r => r.cells[{}].textContent)"


@pytest.mark.slow
def test_the_table_of_queries_is_sorted_searched_and_changed_by_the_keyboard(tab, whole, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(whole, encoding="utf-8")
    tab.open(path)
    # The first drawing of the script equals the content without it.
    said = [
        re.sub(r"<[^>]*>", "", row)
        for row in re.findall(r"(?s)<tr>(<th scope=\"row\".*?)</tr>", whole.split('id="by-query"')[1])
    ][:30]
    drawn = tab.run(
        "[...document.querySelectorAll('#by-query tbody tr')].map(r => [...r.cells].map(c => c.textContent).join(''))"
    )
    assert len(drawn) == 30
    assert drawn == [text.replace("&#39;", "'").replace("&#x27;", "'") for text in said]

    tab.run("document.querySelector('#by-query th:nth-child(3) button').focus()")
    for way, backwards in (("descending", True), ("ascending", False)):
        tab.press("Enter", "\r")
        values = [float(text) for text in tab.run(COLUMN.format(2))]
        assert values == sorted(values, reverse=backwards)
        assert tab.run("document.querySelector('#by-query th:nth-child(3)').ariaSort") == way
    assert len(tab.run("[...document.querySelectorAll('#by-query th[aria-sort=none]')].map(t => 1)")) == 4

    tab.run("document.getElementById('find').focus()")
    tab.type("WiFi")
    assert tab.run(COLUMN.format(0)) == ["q09"]
    assert tab.run("document.getElementById('shown').textContent") == "1 of 30 queries found."

    tab.run("{ const m = document.getElementById('measure'); m.value = 'RR'; m.dispatchEvent(new Event('change')); }")
    value = rankgauge.evaluate(QRELS, RUNS[0], "RR").value("q09", "RR")
    assert tab.run(COLUMN.format(2)) == [f"{value:.4f}"]
    assert tab.complaints == []


@pytest.mark.slow
def test_other_tables_are_sorted_too_and_missing_values_come_last(tab, whole, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(whole, encoding="utf-8")
    tab.open(path)
    rows = "[...document.querySelectorAll('#section-2 tbody tr')].map(r => r.cells[{}].textContent)"
    for _ in range(2):
        tab.run("document.querySelector('#section-2 th:nth-child(3) button').click()")
        found = [float(text) for text in tab.run(rows.format(2))]
        assert found in (sorted(found), sorted(found, reverse=True))
        tab.run("document.querySelector('#section-2 th:nth-child(7) button').click()")
        assert tab.run(rows.format(6))[0] == "0.0005"
        assert set(tab.run(rows.format(6))[1:]) == {"–"}


@pytest.mark.slow
def test_the_page_fits_a_narrow_screen_and_follows_the_dark(tab, whole, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(whole, encoding="utf-8")
    tab.ask("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
    tab.open(path)
    assert tab.run("document.documentElement.scrollWidth") <= 400
    background = "getComputedStyle(document.body).backgroundColor"
    assert tab.run(background) == "rgb(255, 255, 255)"
    tab.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert tab.run(background) == "rgb(28, 31, 37)"
    ink = "getComputedStyle(document.querySelector('svg.plot text')).fill"
    assert tab.run(ink) == "rgb(232, 233, 237)"
    tab.ask("Emulation.setEmulatedMedia", media="print")
    assert tab.run(background) == "rgb(255, 255, 255)"


@pytest.mark.slow
def test_cranfield_with_all_rankings_takes_less_than_ten_megabytes(data_folder):
    folder = data_folder / "cranfield"
    runs = sorted((folder / "runs").glob("*.gz"))[1:4:2]
    page = html_report(folder / "trec" / "qrels.txt", runs, collection=folder)
    assert len(page.encode()) < 10_000_000
    assert len(values_of(page)["detailed"]) == len(values_of(page)["queries"])
    assert not math.isnan(values_of(page)["values"][0][0][0])


def test_a_query_is_hard_only_if_every_run_is_below_its_mean():
    qrels = {f"q{n}": {"d": 1} for n in range(4)}
    good, bad = ["d"], ["x", "y", "d"]
    runs = {"a": {"q0": bad, "q1": bad, "q2": good, "q3": good}, "b": {"q0": bad, "q1": good, "q2": good, "q3": good}}
    text = Page(html_report(qrels, runs, "RR", plots=False)).text
    hard = text[text.index("Hard for every run") : text.index("Other queries")]
    assert re.findall(r"\bq\d\b", hard)[0] == "q0"
    assert "q1" not in hard


def test_a_negative_grade_is_no_judgment():
    qrels = {"q1": {"pooled": -1, "d": 1}, "q2": {"d": 1}}
    page = html_report(qrels, {"a": {"q1": ["pooled", "d"], "q2": ["d"]}}, "RR", plots=False)
    text = Page(page).text
    assert "1 not judged pooled 2 grade 1 d" in text
    assert "grade -1" not in text


@pytest.mark.slow
def test_curves_are_of_the_queries_and_by_the_policies_of_the_result():
    qrels = {f"q{n}": {"a": 1} for n in range(6)}
    runs = {
        name: {q: {"a": 1.0, "z": 1.0} if int(q[1]) < last else {"y": 1.0} for q in qrels}
        for name, last in (("one", 3), ("two", 5))
    }
    some = [f"q{n}" for n in range(4)]
    for kind in ({"ties": "input"}, {"ties": "trec"}):
        result = rankgauge.compare(qrels, runs, "RR", queries=some, **kind)
        alts = {
            a["aria-label"] for a in Page(html_report(qrels, runs, result=result)).all("svg") if a.get("role") == "img"
        }
        for name in ("first-ranks", "cutoffs", "precision-recall"):
            own = [
                rankgauge.evaluate(
                    qrels, rankgauge.Run.of(run, name=n), rankgauge.rendering.plot_measures(name), queries=some, **kind
                )
                for n, run in runs.items()
            ]
            assert rankgauge.plot(own, name).alt in alts


def test_it_begins_with_result_cause_and_next_step(whole):
    terms = re.findall(r"(?s)<dl class=\"bottom-line\">(.*?)</dl>", whole)[0]
    assert re.findall(r"<dt>(.*?)</dt>", terms) == ["Result", "Why keyword is worse", "Next step"]
    assert "24 of 30 queries of keyword miss a relevant document in the top 5; likely cause: " in terms
    assert "Suggested fix for keyword: " in terms
    assert whole.index("bottom-line") < whole.index('class="warning"')


def test_without_matplotlib_there_are_no_plots_and_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("rankgauge.reports.page.find_spec", lambda _: None)
    page = html_report(QRELS, RUNS)
    assert "<svg" not in page
    assert "without plots: matplotlib is not installed" in page
    with pytest.raises(MissingExtra):
        html_report(QRELS, RUNS, plots=True)


def test_texts_of_another_collection_are_reported():
    page = html_report(QRELS, RUNS, collection=Collection.of({"other": "x"}), plots=False)
    assert "is in the collection, such as" in page


def test_three_runs_begin_with_the_best_run_and_its_difference_from_the_baseline():
    qrels = {f"q{n}": {"d": 1} for n in range(30)}
    runs = {
        "low": {q: ["x", "y", "d"] for q in qrels},
        "middle": {q: ["x", "d"] if n % 2 else ["x", "y", "d"] for n, q in enumerate(qrels)},
        "best": {q: ["d"] if n % 3 else ["x", "d"] for n, q in enumerate(qrels)},
    }
    text = Page(html_report(qrels, runs, "RR", plots=False)).text
    assert "Result best has the highest RR (0.8333); best is better than low by RR: " in text
    assert "Why low is worse" in text
    assert "Conclusions in sentences" in text


def test_without_a_difference_no_run_is_called_worse():
    qrels = {f"q{n}": {"d": 1} for n in range(12)}
    one = {q: ["d"] if n % 2 else ["x", "y", "d"] for n, q in enumerate(qrels)}
    other = {q: ["x", "y", "d"] if n % 2 else ["d"] for n, q in enumerate(qrels)} | {"q1": ["d"]}
    page = html_report(qrels, {"one": one, "other": other}, "RR", plots=False)
    terms = re.findall(r"(?s)<dl class=\"bottom-line\">(.*?)</dl>", page)[0]
    assert "cannot tell, difference " in terms
    assert "worse" not in terms
    assert "Judge more queries before choosing a run." in terms


def test_scores_that_look_like_distances_withhold_the_verdict_and_the_diagnosis():
    run = {q: [f"d{n}" for n in range(9, -1, -1)] for q in (f"q{n}" for n in range(30))}
    qrels = {q: {"d0": 1} for q in run}
    distances = {q: {d: 1.0 + n for n, d in enumerate(reversed(docs))} for q, docs in run.items()}
    good = {q: {d: -score for d, score in docs.items()} for q, docs in distances.items()}
    comparison = rankgauge.compare(qrels, {"good": good, "bad": distances}, "RR")
    assert comparison.withheld
    page = html_report(qrels, {"good": good, "bad": distances}, "RR", diagnosed="bad", plots=False)
    text = Page(page).text
    assert "Result bad cannot be compared: the scores look like distances" in text
    assert "Next step Fix the input first: " in text
    assert "likely cause" not in text
    assert "no diagnosis of bad" in text
    alone = Page(html_report(qrels, {"bad": distances}, "RR", plots=False)).text
    assert "Result bad cannot be evaluated: the scores look like distances" in alone
