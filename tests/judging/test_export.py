"""Exports of judgments: grades by rule, preferences, samples, and lossless files."""

import json
import statistics
import xml.etree.ElementTree as ET
from collections import defaultdict
from itertools import combinations

import jsonschema
import pytest
from hypothesis import given, settings, strategies as st
from judging_events import contents, project_of
from schemas import strict

import rankgauge
from rankgauge.data import PreferenceQrels, SampledQrels
from rankgauge.errors import InputError, UnknownName
from rankgauge.judging import (
    Candidate,
    Choice,
    Document,
    Judge,
    JudgingProject,
    Presentation,
    Question,
    Settings,
    Source,
    export_judgments,
    import_judgments,
    measure_relevance,
    write_label_studio,
)

TEXTS = {"q1": "How are ties broken?", "q2": "What is a pool?"}


def judged(where, *rows, settings=None, sources=()):
    """A project with judgments: (question, documents, outcome, further fields)."""
    project = JudgingProject.create(where, settings)
    project.add_questions([Question(name, text) for name, text in TEXTS.items()])
    pool = dict.fromkeys((q, d) for q, documents, *_ in rows for d in documents)
    project.add_candidates(
        [Candidate(*pair, sources or (Source("bm25"),)) for pair in pool], [Document(d, {"text": d}) for _, d in pool]
    )
    with project.writing() as stored:
        for name in ("ann", "bob"):
            stored.add_judge(Judge(name, name.title()))
        stored.add_judge(Judge("gpt", "gpt", kind="model"))
        for number, (question, documents, said, *more) in enumerate(rows):
            fields = {"judge": "ann", "mode": "choice"} | (more[0] if more else {})
            name = f"{number:08}-0000-4000-8000-000000000000"
            stored.append_presentation(Presentation(name, question, tuple(documents), **fields))
            if isinstance(said, list):
                choice = Choice(name, name, fields["judge"], "graded", grades=tuple(said))
            elif said in {"none", "cannot tell"}:
                choice = Choice(name, name, fields["judge"], said)
            else:
                choice = Choice(name, name, fields["judge"], "chosen", tuple(said))
            stored.append_choice(choice)
    return project


def counted_by_hand(project):
    """Count how often users were shown and chose each pair, by definition."""
    shown, chosen = defaultdict(int), defaultdict(int)
    for each in project.judgments():
        if each.status != "counted" or each.choice.outcome == "graded":
            continue
        # A ranking that stops early says nothing about the documents that were not ranked.
        partial = each.presentation.mode == "ranking" and each.choice.documents
        for document in each.choice.documents if partial else each.presentation.documents:
            pair = each.presentation.question, document
            shown[pair] += 1
            chosen[pair] += document in each.choice.documents
    return shown, chosen


# ---- grades


def test_grades_follow_the_places_of_rankings_and_documents_not_ranked_stay_unjudged(tmp_path):
    rows = [
        ("q1", "abcde", "ca", {"mode": "ranking"}),
        ("q1", "abcdf", "cba", {"mode": "ranking"}),
        ("q1", "afgh", "none", {"mode": "ranking"}),
        ("q2", "abcd", "d", {"mode": "ranking"}),
        ("q2", "bc", "cannot tell", {"mode": "ranking"}),
    ]
    project = judged(tmp_path / "a.db", *rows)
    # By hand: place 1 is grade 3, as three documents were placed at most; the lower median.
    places = defaultdict(list)
    for question, shown, placed, _ in rows:
        for document in shown if placed == "none" else placed if len(placed) < 5 else "":
            rank = -1 if placed == "none" else placed.index(document)
            places[question, document].append(0 if rank < 0 else 3 - rank)
    wanted = {pair: sorted(given)[(len(given) - 1) // 2] for pair, given in places.items()}
    export = export_judgments(project)
    assert {(q, d): g for q, own in export.grades.items() for d, g in own.items()} == wanted
    assert wanted["q1", "c"] == 3
    assert wanted["q1", "a"] == 1
    assert wanted["q2", "d"] == 3
    assert {"d", "e"}.isdisjoint(export.judgments["q1"])
    assert [each["means"] for each in export.about["scale"]] == [
        "none of these answers it",
        "place 3",
        "place 2",
        "place 1",
    ]
    assert "5 documents shown but never ranked: unjudged" in export.about["notes"]
    # All rules and the relevance agree on which documents are judged.
    for rule in ("share", "fit"):
        by_rule = export_judgments(project, relevance=rule).grades
        assert {(q, d) for q, own in by_rule.items() for d in own} == set(wanted)
    found = measure_relevance(project.judgments(), project.pools)
    assert {(each.question, each.document) for each in found.documents if each.judged} == set(wanted)
    assert found.question("q1")[0].document == "c"


def test_choices_and_rankings_together_are_graded_by_share(tmp_path):
    rows = [("q1", "abc", "ba", {"mode": "ranking"}), ("q1", "ab", "a"), ("q1", "cd", "none")]
    export = export_judgments(judged(tmp_path / "a.db", *rows))
    assert (export.about["relevance"], dict(export.judgments["q1"])) == ("share", {"a": 2, "b": 1, "c": 0, "d": 0})


def test_shares_become_places_and_never_chosen_is_0(tmp_path):
    project = judged(
        tmp_path / "a.db",
        ("q1", "abc", "a"),
        ("q1", "abd", "a"),
        ("q1", "bcd", "b"),
        ("q1", "bce", "none"),
        ("q1", "cf", "cannot tell"),
        ("q1", "eg", "g", {"judge": "gpt"}),
        ("q2", "ab", "b"),
    )
    held = export_judgments(project).judgments
    # a 2/2, b 1/4, c 0/3, d 0/2, e 0/1; f and g were never shown to a person who decided.
    assert dict(held) == {"q1": {"a": 2, "b": 1, "c": 0, "d": 0, "e": 0}, "q2": {"a": 0, "b": 1}}


def test_equal_shares_get_equal_grades(tmp_path):
    rows = [("q1", "ab", "a"), ("q1", "ab", "b"), ("q1", "cd", "c"), ("q1", "ce", "none")]
    held = export_judgments(judged(tmp_path / "a.db", *rows)).judgments
    assert dict(held["q1"]) == {"a": 1, "b": 1, "c": 1, "d": 0, "e": 0}


@settings(deadline=None, max_examples=8)
@given(held=contents(modes=("choice", "ranking", "yes-no")))
def test_grades_by_share_are_the_order_of_the_shares(held, tmp_path_factory):
    with project_of(str(tmp_path_factory.mktemp("export") / "a.db"), held) as project:
        shown, chosen = counted_by_hand(project)
        try:
            qrels = export_judgments(project, relevance="share").grades
        except InputError:
            assert not shown
            return
    assert {(q, d) for q in qrels for d in qrels[q]} == set(shown)
    for query in qrels:
        for one, other in combinations(qrels[query], 2):
            a, b = (chosen[query, d] * shown[query, e] for d, e in ((one, other), (other, one)))
            grades = qrels[query][one], qrels[query][other]
            assert (a > b, a == b) == (grades[0] > grades[1], grades[0] == grades[1])
        for document, grade in qrels[query].items():
            assert (grade == 0) == (chosen[query, document] == 0)
        assert set(qrels[query].values()) | {0} == set(range(int(max(qrels[query].values())) + 1))


def test_the_fit_is_cut_and_documents_on_a_cut_are_listed(tmp_path):
    rows = [("q1", "ab", "a")] * 30 + [("q1", "cd", "c"), ("q1", "cd", "d")] * 5
    rows += [("q1", "b", "none", {"mode": "yes-no"})] * 30 + [("q1", "cd", "none")] * 5
    project = judged(tmp_path / "a.db", *rows)
    export = export_judgments(project, relevance="fit")
    fits = {each.document: each for each in measure_relevance(project.judgments()).documents}
    unsure = {each["document"]: each for each in export.about["unsure"]}
    for document, each in fits.items():
        wanted = 0 if each.fit < 0.5 else 1 if each.fit < 0.8 else 2 if each.fit < 0.95 else 3
        assert export.judgments["q1"][document] == wanted
        low = [each.fit_low < cut <= each.fit_high for cut in (0.5, 0.8, 0.95)]
        assert (document in unsure) == any(low)
    assert export.judgments["q1"]["a"] == 3
    assert "c" in unsure
    dropped = export_judgments(project, relevance="fit", drop_unsure=True)
    on_half = {name for name, each in fits.items() if each.fit_low < 0.5 <= each.fit_high}
    assert on_half == {"c", "d"}
    assert set(dropped.judgments["q1"]) == {"a", "b"}
    judged_ones = {each["document"]: each["judged"] for each in dropped.about["unsure"]}
    assert judged_ones["a"]
    assert not judged_ones["c"]


def test_grades_are_the_lower_median_of_those_of_people(tmp_path):
    graded = {"mode": "graded"}
    rows = [("q1", "a", [g], graded) for g in (3, 1, 2)] + [
        ("q1", "b", [2], graded),
        ("q1", "b", [1], graded),
        ("q1", "c", [3], graded | {"judge": "gpt"}),
    ]
    export = export_judgments(judged(tmp_path / "a.db", *rows, settings=Settings(mode="graded")))
    assert export.about["relevance"] == "grade"
    assert dict(export.judgments["q1"]) == {"a": 2, "b": statistics.median_low([2, 1])}
    assert [each["means"] for each in export.about["scale"]] == list(Settings().grades)


def test_a_project_without_judgments_says_what_to_do(tmp_path):
    project = judged(tmp_path / "my a.db", ("q1", "ab", "cannot tell"))
    for to, said in (("qrels", "no choices of people"), ("preferences", "nobody has chosen")):
        with pytest.raises(InputError, match=said):
            export_judgments(project, to)
    with pytest.raises(InputError, match="no grades of people") as caught:
        export_judgments(project, relevance="grade")
    assert caught.value.fix.endswith(f"rankgauge serve --store '{tmp_path / 'my a.db'}'")
    with pytest.raises(UnknownName):
        export_judgments(project, relevance="mean")


# ---- preferences


def test_a_chosen_document_is_preferred_to_each_other_one_shown(tmp_path):
    project = judged(
        tmp_path / "a.db",
        ("q1", "abc", "b"),
        ("q1", "ab", "none"),
        ("q1", "a", "a", {"mode": "yes-no"}),
        ("q1", "abcd", "ca", {"mode": "ranking"}),
        ("q1", "abc", "c", {"purpose": "repeat"}),
    )
    groups = export_judgments(project, "preferences").judgments["q1"]
    assert [each["0"] for each in groups.values()] == [
        {"a": 1, "b": 2, "c": 1},
        {"a": 0, "b": 0},
        {"a": 2, "b": 1, "c": 3, "d": 1},
    ]
    # The first choice gives b > a and b > c, the ranking c > a > (b, d): 7 preferences.
    values = rankgauge.evaluate(
        export_judgments(project, "preferences").judgments, {"q1": ["b", "c", "a", "d"]}, "Prefs"
    )
    kept = [("b", "a"), ("b", "c"), ("c", "a"), ("c", "d"), ("a", "d")]
    lost = [("c", "b"), ("a", "b")]
    assert values.mean()["Prefs"] == len(kept) / (len(kept) + len(lost))


# ---- samples


def test_the_pool_and_the_random_tail_are_strata(tmp_path):
    project = judged(tmp_path / "a.db")
    random = Source("random", "random", probability=0.25)
    collection = [*"abc", *(f"x{n}" for n in range(6)), "t", "u"]
    pool = [Candidate("q1", d, (Source("bm25"),)) for d in "abc"]
    project.add_candidates([*pool, *(Candidate("q1", d, (random,)) for d in "tu")], [])
    with project.writing() as stored:
        for number, best in enumerate("at"):
            shown = Presentation(f"p{number}", "q1", ("a", "b", "t"), "ann")
            stored.append_presentation(shown)
            stored.append_choice(Choice(f"c{number}", shown.id, "ann", "chosen", (best,)))
    held = export_judgments(project, "sampled", documents=collection).judgments
    assert isinstance(held, SampledQrels)
    assert held["q1"] == {"1": {"a": 1, "b": 0, "c": -1}, "0.25": {"t": 1, "u": -1} | {f"x{n}": -1 for n in range(6)}}
    assert rankgauge.evaluate(held, {"q1": ["a", "t"]}, ["infNDCG@2"]).mean()["infNDCG@2"] > 0
    with pytest.raises(InputError, match="--collection"):
        export_judgments(project, "sampled")


def test_a_sample_needs_random_documents(tmp_path):
    project = judged(tmp_path / "a.db", ("q1", "ab", "a"))
    with pytest.raises(InputError, match="no document from outside the pool"):
        export_judgments(project, "sampled", documents="abc")


# ---- files


FORMATS = {
    "trec": "q.txt",
    "csv": "q.csv",
    "tsv": "q.tsv",
    "jsonl": "q.jsonl",
    "json": "q.json",
    "parquet": "q.parquet",
    "arrow": "q.arrow",
    "beir": "q.tsv",
    "quepid": "q.csv",
    "opensearch": "q.json",
    "rank-eval": "q.json",
}


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_is_imported_and_exported_as_it_was(form, tmp_path):
    rows = [("q1", "abc", "a"), ("q1", "abd", "b"), ("q1", "ad", "a"), ("q2", "ab", "none")]
    first = export_judgments(judged(tmp_path / "a.db", *rows))
    path = tmp_path / FORMATS[form]
    first.write(path, form)
    other = JudgingProject.create(tmp_path / "b.db")
    other.add_questions([Question(name, text) for name, text in TEXTS.items()])
    done = import_judgments(other, path, "Ann")
    assert (done.new, done.judges) == (6, ("Ann",))
    second = export_judgments(other)
    assert second.judgments == first.judgments
    second.write(tmp_path / f"again-{path.name}", form)
    assert rankgauge.Qrels.of(tmp_path / f"again-{path.name}") == rankgauge.Qrels.of(path)
    # A second import adds nothing.
    again = import_judgments(other, path, "Ann")
    assert (again.new, again.changed, again.known) == (0, 0, 6)
    assert export_judgments(other).judgments == first.judgments


@pytest.mark.parametrize("name", ["p.txt", "p.csv", "p.json", "p.jsonl"])
def test_preferences_are_imported_and_exported_as_they_were(name, tmp_path):
    rows = [
        ("q1", "abc", "b"),
        ("q1", "ab", "none"),
        ("q1", "abcd", "ca", {"mode": "ranking"}),
        ("q2", "abc", "cab", {"mode": "ranking"}),
        ("q1", "abcd", "none", {"mode": "ranking"}),
    ]
    project = judged(tmp_path / "a.db", *rows)
    first = export_judgments(project, "preferences")
    first.write(tmp_path / name)
    other = JudgingProject.create(tmp_path / "b.db")
    assert import_judgments(other, tmp_path / name, "Ann", preferences=True, add_questions=True).new == len(rows)
    assert export_judgments(other, "preferences").judgments == first.judgments
    # The original project knows them.
    assert import_judgments(project, tmp_path / name, "Ann", preferences=True).known == len(rows)

    def numbers(found):
        return {(e.question, e.document): (e.shown, e.chosen, e.fit) for e in found.documents}

    assert numbers(measure_relevance(other.judgments())) == numbers(measure_relevance(project.judgments()))


@settings(deadline=None, max_examples=8)
@given(
    qrels=st.dictionaries(
        st.sampled_from("qrs"), st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), min_size=1), min_size=1
    )
)
def test_any_qrels_come_back(qrels, tmp_path_factory):
    with JudgingProject.create(tmp_path_factory.mktemp("import") / "a.db") as project:
        import_judgments(project, qrels, add_questions=True)
        assert export_judgments(project).judgments == rankgauge.Qrels.of(qrels)


def test_the_file_beside_says_guideline_criteria_and_scale(tmp_path):
    project = judged(tmp_path / "a.db", ("q1", "abc", "a"), ("q1", "ab", "b"))
    project.change_guideline("Correct comes first.")
    with project.writing() as stored:
        shown = Presentation("p9", "q2", ("a", "b"), "ann", guideline=2)
        stored.append_presentation(shown)
        stored.append_choice(Choice("c9", "p9", "ann", "none", reason="correctness"))
    for to in ("qrels", "preferences"):
        export_judgments(project, to).write(tmp_path / f"{to}.txt")
        about = json.loads((tmp_path / f"{to}.txt.about.json").read_text())
        jsonschema.validate(about, strict("judging-export-1"))
        assert [(each["version"], each["judgments"]) for each in about["guidelines"]] == [("1", 2), ("2", 1)]
        assert about["guidelines"][1]["text"] == "Correct comes first."
        assert about["criteria"][0] == {"name": "correctness", "decided": 1}
        assert about["judges"] == 1
        assert about["notes"]


def test_two_questions_of_one_text_cannot_be_told_apart_by_text(tmp_path):
    project = judged(tmp_path / "a.db", ("q1", "ab", "a"), ("q2", "ab", "a"))
    project.add_questions([Question("q2", TEXTS["q1"])])
    with pytest.raises(InputError, match="two questions have the text"):
        export_judgments(project).write(tmp_path / "a.csv", "quepid")
    assert not (tmp_path / "a.csv").exists()


def test_a_pool_of_a_language_model_is_never_without_its_warning(tmp_path):
    rows = [("q1", "ab", "a")]
    export = export_judgments(judged(tmp_path / "a.db", *rows, sources=(Source("m", "model"),)))
    assert "a document that looks relevant need not be relevant or correct" in " ".join(export.about["warnings"])
    assert "looks relevant" in str(export)


def test_an_evaluation_reads_the_export(tmp_path):
    rows = [("q1", "abc", "a"), ("q1", "abc", "a"), ("q1", "ab", "b")]
    export_judgments(judged(tmp_path / "a.db", *rows)).write(tmp_path / "q.txt")
    values = rankgauge.evaluate(str(tmp_path / "q.txt"), {"q1": ["c", "b", "a"]}, ["P@2", "RR"])
    assert values.mean() == {"P@2": 0.5, "RR": 0.5}
    export_judgments(judged(tmp_path / "b.db", *rows), "preferences").write(tmp_path / "p.txt")
    assert len(PreferenceQrels.of(tmp_path / "p.txt")["q1"]) == 3


@pytest.mark.parametrize("to", ["qrels", "preferences"])
def test_identifiers_that_are_not_printable_are_not_changed(to, tmp_path):
    odd = ["\u200e right", "\ud7fc", "zwj\u200d"]
    project = judged(tmp_path / "a.db", ("q1", odd, tuple(odd[:1])))
    export_judgments(project, to).write(tmp_path / "q.json")
    other = JudgingProject.create(tmp_path / "b.db")
    import_judgments(other, tmp_path / "q.json", preferences=to == "preferences", add_questions=True)
    assert set(export_judgments(other, to).grades["q1"]) == set(odd)


def test_the_pool_becomes_tasks_of_label_studio(tmp_path):
    scale = ("no", 'a "quoted" <label>', "it's & that")
    project = judged(tmp_path / "a.db", settings=Settings(grades=scale))
    with pytest.raises(InputError, match="the pools are empty"):
        write_label_studio(project, tmp_path / "tasks.json")
    pairs = [(q, f"d{n}") for q in TEXTS for n in range(8)]
    documents = [Document(f"d{n}", {"title": f"Title {n}", "text": "<b>&"}) for n in range(7)]
    project.add_candidates([Candidate(*pair, (Source("bm25"),)) for pair in pairs], documents)
    assert write_label_studio(project, tmp_path / "tasks.json") == 16
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    data = [task["data"] for task in tasks]
    assert sorted((row["query"], row["document"]) for row in data) == sorted(pairs)
    # The order within a question does not show the rank, and is the same each time.
    assert [row["query"] for row in data] == sorted(row["query"] for row in data)
    assert [row["document"] for row in data if row["query"] == "q1"] != [f"d{n}" for n in range(8)]
    by_pair = {(row["query"], row["document"]): row for row in data}
    assert by_pair["q1", "d1"]["text"] == "Title 1\n\n<b>&"
    assert by_pair["q1", "d7"]["text"] == "d7"
    assert by_pair["q2", "d1"]["question"] == TEXTS["q2"]
    config = ET.fromstring((tmp_path / "tasks.json.xml").read_text())
    assert [choice.get("value") for choice in config.iter("Choice")] == list(scale)
    # The columns of the export are those of the import.
    answers = [{**row, "grade": scale[n % 3], "annotator": 1} for n, row in enumerate(data)]
    (tmp_path / "export.json").write_text(json.dumps(answers))
    assert import_judgments(project, tmp_path / "export.json").new == 16
    grades = export_judgments(project, relevance="grade").judgments
    assert [grades[row["query"]][row["document"]] for row in data] == [n % 3 for n in range(16)]
