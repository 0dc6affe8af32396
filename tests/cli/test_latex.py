"""The output of every command in LaTeX: it compiles without warnings and fits the page."""

import shutil
import subprocess

import pytest
from command import run

import rankgauge

FOLDER = rankgauge.sample_path("rankgauge.toml").parent
QRELS, KEYWORD, BM25 = (FOLDER / name for name in ("qrels.txt", "runs/keyword.run", "runs/bm25.run"))
ANSWERS = FOLDER / "answers" / "prompt-1.jsonl"
_LOG = (FOLDER / "log" / "searches.jsonl.gz", "--mapping", FOLDER / "log" / "mapping.toml")
_COMMANDS = {
    "evaluate": ("evaluate", QRELS, KEYWORD, BM25),
    "evaluate many": ("evaluate", QRELS, KEYWORD, "-m", "P.1,3,5,10,20,50,ndcg_cut.1,3,5,10,20,50"),
    "per query": ("evaluate", QRELS, KEYWORD, BM25, "-m", "nDCG@10", "--per-query"),
    "ties": ("sensitivity", "ties", QRELS, KEYWORD),
    "unjudged": ("sensitivity", "unjudged", QRELS, KEYWORD, "-m", "nDCG@10"),
    "compare": ("compare", QRELS, KEYWORD, BM25, "-m", "nDCG@10", "--full"),
    "diff": ("diff", QRELS, KEYWORD, BM25),
    "diagnose": ("diagnose", QRELS, KEYWORD, "--full"),
    "explain": ("explain", QRELS, KEYWORD, "nDCG@10", "--query", "q01"),
    "check": ("check", QRELS, KEYWORD),
    "reliability": ("reliability", QRELS, KEYWORD, BM25),
    "measures": ("measures",),
    "collection": ("collection", "info", FOLDER),
    "bench": ("bench", FOLDER / "rankgauge.toml", "--diagnose", "--no-save"),
    "answers evaluate": ("answers", "evaluate", ANSWERS),
    "history list": ("history", "list"),
    "history trend": ("history", "trend", "-m", "nDCG@10"),
    "logs import": ("logs", "import", *_LOG, "log"),
    "logs metrics": ("logs", "metrics", "log"),
    "logs health": ("logs", "health", "log", "--store", ".rankgauge/store.db", "--run", "bm25"),
}
_PAGE = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs,graphicx}
\extrafloats{60}
\begin{document}
%s
\end{document}
"""


def _latex(name, folder):
    if name.startswith(("history", "logs health")):
        run("evaluate", QRELS, KEYWORD, "-m", "nDCG@10,AP", "--save", cwd=folder)
        run("evaluate", QRELS, BM25, "-m", "nDCG@10,AP", "--save", cwd=folder)
    if name in {"logs metrics", "logs health"}:
        run("logs", "import", *_LOG, "log", cwd=folder)
    done = run(*_COMMANDS[name], "--as", "latex", cwd=folder)
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", _COMMANDS)
def test_the_tables_of_a_command_compile_and_fit_the_page(name, tmp_path):
    text = _latex(name, tmp_path)
    assert r"\begin{tabular}" in text
    compiler = shutil.which("pdflatex")
    if compiler is None:
        pytest.skip("pdflatex is not installed: nothing was compiled")
    (tmp_path / "page.tex").write_text(_PAGE % text, encoding="utf-8")
    done = subprocess.run(
        [compiler, "-interaction=nonstopmode", "-halt-on-error", "page.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    lines = (tmp_path / "page.log").read_text(encoding="utf-8", errors="replace").splitlines()
    assert done.returncode == 0, [line for line in lines if line.startswith("!")]
    assert [line for line in lines if "Overfull" in line or "Warning" in line] == []
