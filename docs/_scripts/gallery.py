"""The plots of the gallery, drawn from the bundled sample.

python docs/_scripts/gallery.py     writes docs/_static/plot-KIND.svg, and the alternative texts
"""

import re
from pathlib import Path

import rankgauge
from rankgauge.rendering import PLOTS, Plot, plot_measures

DOCS = Path(__file__).resolve().parents[1]
_IMAGE = re.compile(r"!\[[^\]]*\]\(_static/plot-(?P<kind>[\w-]+)\.svg\)")


def plots() -> dict[str, Plot]:
    """A plot of each kind, of the two bundled runs."""
    qrels = rankgauge.read_qrels(rankgauge.sample_path("qrels.txt"))
    runs = {
        name: rankgauge.read_run(rankgauge.sample_path(f"runs/{name}.run"))
        for name in ("keyword", "bm25")
    }
    return {
        kind: rankgauge.compare(qrels, runs, plot_measures(kind) or ["nDCG@10", "RR", "R@10"]).plot(
            kind
        )
        for kind in PLOTS
    }


def with_alternative_texts(page: str, made: dict[str, Plot]) -> str:
    """The page with the alternative text that each plot has of itself."""
    return _IMAGE.sub(
        lambda found: f"![{made[found['kind']].alt}](_static/plot-{found['kind']}.svg)", page
    )


def main() -> None:
    """Draw them all."""
    made = plots()
    for kind, plot in made.items():
        plot.save(DOCS / "_static" / f"plot-{kind}.svg")
    page = DOCS / "gallery.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(with_alternative_texts(text, made), encoding="utf-8")


if __name__ == "__main__":
    main()
