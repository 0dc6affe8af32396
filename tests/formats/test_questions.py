"""Questions with their relevant documents as judgments."""

import pytest
from command import run

from rankgauge import Collection, FormatError, InputError, convert, diff, evaluate, gate, read_qrels

ROWS = "question,relevant\nlong?,./refunds.md;late.txt\nwho is it,late.txt\n"
GRADES = {"q1": {"refunds.md": 1.0, "late.txt": 1.0}, "q2": {"late.txt": 1.0}}


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "refunds.md").write_text("# Refunds\n\nWithin a week.\n")
    (folder / "late.txt").write_text("Ask us.\n")
    (folder / "questions.csv").write_text(ROWS)
    return folder


def grades(qrels):
    return {query: dict(found) for query, found in qrels.items()}


def test_a_folder_of_questions_gives_the_judgments_of_its_collection(notes):
    found = read_qrels(notes)
    assert grades(found) == GRADES == grades(Collection.load(notes).qrels)
    assert found.table.notes == (f"{notes}: judgments from questions.csv",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "question,relevant\nlong?,refunds.md;late.txt\nwho is it,late.txt\n"),
        ("a.csv", "Query,expected\nlong?,refunds.md;late.txt\nwho is it,late.txt\n"),
        ("a.tsv", "question\tsource\nlong?\trefunds.md\nlong?\tlate.txt\nwho is it\tlate.txt\n"),
        (
            "a.jsonl",
            """{"question": "long?", "relevant": ["refunds.md", "late.txt"]}
{"question": "who is it", "relevant": "late.txt"}
""",
        ),
    ],
)
def test_a_file_of_questions_is_read_as_judgments(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert grades(read_qrels(tmp_path / name)) == GRADES


@pytest.mark.parametrize("text", ["query,doc_id\nq7,d3\n", "doc_id,text\nd1,a b\n"])
def test_ids_are_no_questions(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(FormatError, match="judgments need one of queries"):
        read_qrels(tmp_path / "a.csv")


def test_a_missing_document_is_refused(notes):
    (notes / "questions.csv").write_text("question,relevant\nlong?,refund.md\n")
    with pytest.raises(FormatError, match=r"there is no document 'refund\.md'"):
        read_qrels(notes)


@pytest.mark.parametrize(
    ("missing", "suggested"), [("refund.md", "refunds.md"), ("lat.md", "late.txt"), ("zzz.md", "")]
)
def test_only_documents_with_a_similar_name_are_suggested(notes, missing, suggested):
    (notes / "questions.csv").write_text(f"question,relevant\nlong?,{missing}\n")
    with pytest.raises(FormatError) as caught:
        read_qrels(notes)
    fix = f"did you mean {suggested!r}?" if suggested else "use the id of a document: its path"
    assert caught.value.fix == fix


def test_every_function_takes_questions_and_their_folder(notes):
    run_a = {"q1": ["refunds.md", "late.txt"], "q2": ["late.txt"]}
    run_b = {"q1": ["late.txt"], "q2": ["refunds.md"]}
    for given in (notes, notes / "questions.csv"):
        assert evaluate(given, run_b, "P@1").mean()["P@1"] == pytest.approx(
            evaluate(GRADES if given == notes else read_qrels(given), run_b, "P@1").mean()["P@1"]
        )
        assert gate(given, run_a, {"measures": {"P@1": {"floor": 0.5}}}, baseline=None)
    shown = diff(notes, run_a, run_b, collection=notes)
    assert "who is it" in shown.to_markdown()


@pytest.mark.parametrize(
    ("target", "kind"), [("qrels.txt", "qrels"), ("queries.jsonl", "queries"), ("corpus.jsonl", "documents")]
)
def test_the_name_of_a_file_determines_the_part_written(notes, tmp_path, target, kind):
    assert convert(notes, tmp_path / target).kind == kind
    assert (tmp_path / target).is_file()
    if kind != "documents":
        done = convert(notes / "questions.csv", tmp_path / target)
        assert (done.kind, done.queries) == (kind, 2)


def test_an_ambiguous_part_must_be_named(notes, tmp_path):
    with pytest.raises(InputError, match="not one file"):
        convert(notes, tmp_path / "out.csv")
    with pytest.raises(InputError, match="judgments or queries"):
        convert(notes / "questions.csv", tmp_path / "out.csv")
    assert not list(tmp_path.glob("out*"))


def test_a_collection_of_other_documents_is_not_silently_ignored(notes, tmp_path):
    for name in ("a.run", "b.run"):
        (tmp_path / name).write_text("q1 Q0 d1 1 2.0 a\nq1 Q0 d2 2 1.0 a\n")
    printed = run("diff", notes / "questions.csv", tmp_path / "a.run", tmp_path / "b.run", "--collection", notes)
    assert "none of the 2 documents of the run is in the collection, such as 'd1'" in " ".join(printed.stdout.split())


def test_a_folder_of_notes_is_gated_by_the_name_of_a_retriever(notes, tmp_path):
    (notes / "questions.csv").write_text("question,relevant\nweek,refunds.md\nask us,late.txt\n")
    (tmp_path / "rankgauge.toml").write_text('collection = "notes"\n[retrievers.mine]\ntype = "bm25"\n')
    made = run("gate", "mine", "--update-baseline", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "2 queries are too few for your margin of 0.02" in made.stderr
    assert run("gate", "mine", cwd=tmp_path).stdout.startswith("IDENTICAL: mine")
    done = run("gate", "other", cwd=tmp_path)
    assert "unknown retriever of the project 'other'" in done.stderr
