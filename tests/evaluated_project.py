"""A project with two saved evaluations of the same queries, for tests of pages."""

import json

from rankgauge import Project, Run
from rankgauge.answers import AnswerRecord, AnswerSet, Context, RuleJudge, Verdict, VerdictStore, evaluate_answers
from rankgauge.web import judging_app

QUERIES = {f"q{number}": f"How are ties broken in case {number}?" for number in range(8)}
_DOCUMENTS = 12
EVIL = '<script>alert("1")</script>'
RECORDS = (
    AnswerRecord(
        "q/1",
        f"How high is the tower? {EVIL}",
        f"The tower is 5 m high. The tower is green. {EVIL} is so.",
        (Context("d1", f"The tower is 5 m high {EVIL}."), Context("d2", "The tower is red.")),
        "The tower is 5 m high.",
    ),
    AnswerRecord(
        "q2", "How old is it?", "I don't know.", (Context("d3", "It is 90 years old."),), "It is 90 years old."
    ),
)


def save_answers(project, records=RECORDS, judge=None, prompt="p"):
    """Save an evaluation of answers by rules, or by a judge with a verdict on each item; return its number.

    A judge without a prompt is a person.
    """
    answers = AnswerSet("prompt-1", records)
    items = [*answers.items()]
    verdicts = [verdict for verdict in RuleJudge().judge(items) if isinstance(verdict, Verdict)]
    if judge:
        verdicts = [Verdict(item.key, "supported", judge, prompt) for item in items]
    evaluation = evaluate_answers(answers, verdicts, judge={} if prompt else {"person": True})
    if judge:
        with VerdictStore(project.file.store) as store:
            store.add(verdicts)
    return project.evaluations.add(evaluation, settings=evaluation.settings, answers=answers.rows()).id


def create_evaluated(folder, **changed):
    """Create a project in a folder, and save an evaluation of two runs; `changed` replaces texts of documents."""
    folder.mkdir(exist_ok=True)
    texts = {f"d{number}": f"Ties are broken by <b>rule {number}</b>." for number in range(_DOCUMENTS)} | changed
    rows = [{"_id": name, "title": f"Rule {name}", "text": text} for name, text in texts.items()]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = [{"_id": name, "text": text} for name, text in QUERIES.items()]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    # Documents 0 to 5 are judged; the relevant document of query n is document n modulo 4.
    lines = [
        f"{query} 0 d{document} {2 * (document == number % 4) + (document == 5)}\n"
        for number, query in enumerate(QUERIES)
        for document in range(6)
    ]
    (folder / "qrels.txt").write_text("".join(lines))
    (folder / "rankgauge.toml").write_text(
        'collection = "."\nmeasures = ["nDCG@10", "P@5", "RR"]\nbaseline = "old"\n\n'
        '[retrievers.old]\ntype = "bm25"\n\n[retrievers.new]\ntype = "bm25"\n'
    )
    project = Project(folder)
    for name, shift in (("old", 0), ("new", 3)):
        ranking = {
            query: [f"d{(place + shift * (number % 3)) % _DOCUMENTS}" for place in range(10)]
            for number, query in enumerate(QUERIES)
        }
        project.evaluate(Run(ranking, name=name))
    project.open_judging()
    return project


def evaluation_app(project):
    """Return the pages of a project with evaluations."""
    return judging_app(project.judging, evaluations=project)
