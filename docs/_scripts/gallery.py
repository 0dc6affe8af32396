"""Plots of the gallery and screenshots of reports, made from the bundled sample.

python docs/_scripts/gallery.py     writes docs/_static/plot-KIND.svg, and alternative texts
python docs/_scripts/gallery.py --reports FOLDER
                                    also docs/_static/report-NAME.png, and each page in FOLDER

The screenshots need Playwright and Chromium.
"""

import re
import shutil
import sys
from pathlib import Path

import rankgauge
from rankgauge import answers
from rankgauge.rendering import PLOTS, Plot, plot_measures
from rankgauge.reports import gate_page

DOCS = Path(__file__).resolve().parents[1]
# Report, color scheme, and size of each screenshot.
PICTURES = {
    "light": ("runs", "light", 900, 1240),
    "dark": ("runs", "dark", 900, 1240),
    "answers": ("answers", "light", 900, 1150),
    "gate": ("gate", "light", 900, 760),
}
READER = {"name": "reader", "person": True}
_IMAGE = re.compile(r"!\[[^\]]*\]\(_static/plot-(?P<kind>[\w-]+)\.svg\)")


def plots() -> dict[str, Plot]:
    """Return a plot of each kind for the two bundled runs."""
    qrels = rankgauge.read_qrels(rankgauge.sample_path("qrels.txt"))
    runs = {name: rankgauge.read_run(rankgauge.sample_path(f"runs/{name}.run")) for name in ("keyword", "bm25")}
    return {
        kind: rankgauge.compare(qrels, runs, plot_measures(kind) or ["nDCG@10", "RR", "R@10"]).plot(kind)
        for kind in PLOTS
    }


def with_alternative_texts(page: str, made: dict[str, Plot]) -> str:
    """Return the page with the alternative text of each plot."""
    return _IMAGE.sub(lambda found: f"![{made[found['kind']].alt}](_static/plot-{found['kind']}.svg)", page)


def reports() -> dict[str, str]:
    """Return the report pages: two runs, answers to a prompt, and a failing gate."""
    sample = rankgauge.sample_path("qrels.txt").parent
    qrels, bm25, keyword = (sample / name for name in ("qrels.txt", "runs/bm25.run", "runs/keyword.run"))
    (given,) = answers.read_answers(sample / "answers/prompt-1.jsonl", reference=sample / "answers/questions.jsonl")
    verdicts = answers.read_verdicts(sample / "answers/verdicts.jsonl", [given])
    return {
        "runs": rankgauge.html_report(qrels, [bm25, keyword], collection=sample),
        "answers": rankgauge.html_report(
            answers.diagnose_answers(answers.evaluate_answers(given, verdicts, judge=READER))
        ),
        "gate": gate_page(rankgauge.gate(qrels, keyword, baseline=rankgauge.Baseline.from_run(qrels, bm25))),
    }


def take_screenshots(pages: dict[str, str], folder: Path) -> None:
    """Write the pages and screenshots of their first screen."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for picture, (name, scheme, width, height) in PICTURES.items():
            file = folder / f"{name}.html"
            file.write_text(pages[name], encoding="utf-8")
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(file.resolve().as_uri())
            page.screenshot(path=DOCS / "_static" / f"report-{picture}.png")
            page.close()
        browser.close()


def main() -> None:
    """Write all plots, texts, and requested screenshots."""
    made = plots()
    for kind, plot in made.items():
        plot.save(DOCS / "_static" / f"plot-{kind}.svg")
    page = DOCS / "gallery.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(with_alternative_texts(text, made), encoding="utf-8")
    if "--reports" in sys.argv:
        take_screenshots(reports(), Path(sys.argv[-1]))


if __name__ == "__main__":
    main()
