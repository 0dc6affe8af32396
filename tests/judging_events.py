"""Random contents of judging projects, for tests of copies, exports, and counts."""

import uuid

from hypothesis import strategies as st

from rankgauge.judging import (
    Candidate,
    Choice,
    Document,
    GoldTask,
    Judge,
    JudgingProject,
    Presentation,
    Question,
    Settings,
    Source,
)
from rankgauge.store.schema import SCHEMA

TEXT = st.text(st.characters(exclude_characters="\0"), max_size=12)
NAMES = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=8)
GRADES = 4
_PURPOSES = ("active", "random", "overlap", "repeat", "adjudication", "import")


@st.composite
def choices_of(draw, shown, number):
    """A choice that is valid for a presentation."""
    outcomes = {
        "choice": ["chosen", "none", "cannot tell", "undone"],
        "ranking": ["chosen", "none", "later"],
        "yes-no": ["chosen", "none", "cannot tell"],
        "graded": ["graded", "cannot tell", "later"],
    }
    outcome = draw(st.sampled_from(outcomes[shown.mode]))
    documents, grades = (), ()
    if outcome == "chosen":
        many = draw(st.integers(1, len(shown.documents))) if shown.mode == "ranking" else 1
        documents = tuple(draw(st.permutations(shown.documents))[:many])
    if outcome == "graded":
        grades = tuple(draw(st.integers(0, GRADES - 1)) for _ in shown.documents)
    return Choice(
        str(uuid.UUID(int=number)),
        shown.id,
        shown.judge,
        outcome,
        documents,
        grades,
        comment=draw(TEXT),
        seconds=draw(st.none() | st.floats(0, 1e6)),
    )


@st.composite
def contents(draw, modes=("choice", "ranking", "yes-no", "graded"), most=12):
    """Questions, candidates, documents, judges, gold tasks, presentations, and choices."""
    queries = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    docs = draw(st.lists(NAMES, min_size=3, max_size=6, unique=True))
    judges = [
        Judge(f"j{number}", name, kind=draw(st.sampled_from(["person", "person", "model"])))
        for number, name in enumerate(draw(st.lists(NAMES, min_size=1, max_size=3)))
    ]
    presentations, choices = [], []
    for number in range(draw(st.integers(0, most))):
        mode = draw(st.sampled_from(modes))
        size = {"choice": 3, "ranking": 3}.get(mode, 1)
        shown = Presentation(
            str(uuid.UUID(int=number)),
            draw(st.sampled_from(queries)),
            tuple(draw(st.permutations(docs))[:size]),
            draw(st.sampled_from(judges)).id,
            mode,
            draw(st.sampled_from(_PURPOSES)),
        )
        presentations.append(shown)
        for _ in range(draw(st.integers(0, 2))):
            choices.append(draw(choices_of(shown, len(choices))))
    scores = st.none() | st.floats(-9, 9)
    return {
        "questions": [Question(q, draw(TEXT), probability=draw(st.none() | st.floats(0, 1))) for q in queries],
        "candidates": [Candidate(q, d, (Source(draw(NAMES), score=draw(scores)),)) for q in queries for d in docs],
        "documents": [Document(d, {draw(NAMES): draw(TEXT)}) for d in docs],
        "judges": judges,
        "gold": [GoldTask(queries[0], tuple(docs[:3]), (docs[0],))],
        "presentations": presentations,
        "choices": choices,
    }


def project_of(where, held, settings=None):
    """Create a project with these contents."""
    project = JudgingProject.create(where, settings or Settings())
    with project.writing() as stored:
        stored.add_questions(held["questions"])
        stored.add_documents(held["documents"])
        stored.add_candidates(held["candidates"])
        stored.add_gold(held["gold"])
        for each in held["judges"]:
            stored.add_judge(each, f"secret of {each.id}")
        for each in held["presentations"]:
            stored.append_presentation(each)
        for each in held["choices"]:
            stored.append_choice(each)
    return project


def everything(project):
    """Return all contents of a project, for comparison."""
    with project._database.reading() as connection:  # noqa: SLF001 - whatever is stored
        tables = [table for name, table in SCHEMA.tables.tables.items() if "_judging_" in name]
        return [
            (table.name, *row)
            for table in tables
            for row in connection.execute(table.select().order_by(*table.primary_key)).all()
        ]
