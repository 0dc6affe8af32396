"""``rankgauge answers``: evaluate, gate, and demo."""

import json
import re

import pytest
from answer_server import asked, entry, verdicts
from command import run
from loopback import serving

from rankgauge.answers import (
    AnswerSet,
    RuleJudge,
    VerdictStore,
    evaluate_answers,
    items_of,
    read_answers,
    read_verdicts,
    sentence_claims,
)
from rankgauge.gates import GateResult
from rankgauge.retrievers import HashingEncoder
from rankgauge.sample import sample_path
from rankgauge.store import Gates

QUESTIONS = sample_path("answers/questions.jsonl")
FIRST, SECOND = (sample_path(f"answers/prompt-{number}.jsonl") for number in (1, 2))
VERDICTS = sample_path("answers/verdicts.jsonl")


def answers(command, *words, code=0):
    done = run("answers", command, *words)
    assert done.returncode == code, done.stderr
    return done


def _judged_by_rules(file):
    (answers,) = read_answers(file, reference=QUESTIONS)
    items = {i.key: i for each in answers for i in items_of(each, sentence_claims(each))}
    return answers, RuleJudge().judge(list(items.values()))


def means(done):
    return {each["name"]: each["mean"] for each in json.loads(done.stdout)["measures"]}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A file with the answers of both prompts."""
    path = tmp_path_factory.mktemp("answers") / "both.jsonl"
    rows = [
        json.loads(line) | {"system": file.stem} for file in (FIRST, SECOND) for line in file.read_text().splitlines()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_two_prompts_are_shown_in_one_table(both):
    shown = answers("evaluate", both, "--reference", QUESTIONS).stdout
    assert len(shown.splitlines()) <= 25
    assert max(map(len, shown.splitlines())) <= 80
    assert re.search(r"\nmeasure +prompt-1 +prompt-2\n", shown)
    found = [evaluate_answers(*_judged_by_rules(file), "AnswerCorrectness") for file in (FIRST, SECOND)]
    first, second = (each.mean()["AnswerCorrectness"] for each in found)
    assert re.search(rf"\nAnswerCorrectness \(by judge\) +{first:.3f} +{second:.3f}\n", shown)
    assert shown.startswith("prompt-1 and prompt-2 cannot be compared: the judge of AnswerCorrectness is")
    assert shown.count("judge: rules, not calibrated") == 1


def test_the_full_output_of_two_prompts_shows_the_causes_of_each(both):
    shown = answers("evaluate", both, "--reference", QUESTIONS, "--full").stdout
    for part in ("R@5", "nDCG@5", "Faithfulness", "Completeness", "TokenF1"):
        assert f"\n{part} " in shown
    assert "prompt-1: generation is at fault in 13 of 20 answers" in shown
    assert "prompt-2: retrieval is at fault in 3 of 20 answers" in shown
    assert re.search(r"answered though +generation +2 ", shown)
    assert re.search(r"used but contradicted +generation +3 ", shown)
    assert len(re.findall(r"(?m)^(?:retrieval +)?P@5 ", shown)) == 5  # the stages are in two parts


def test_systems_of_other_questions_have_no_verdict(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text(
        "".join(
            json.dumps({"id": f"{system}{n}", "question": "a", "answer": "b", "reference": "b", "system": system})
            + "\n"
            for system in ("one", "two")
            for n in range(3)
        )
    )
    for words in ((), ("--full",)):
        shown = answers("evaluate", path, *words).stdout
        assert shown.startswith("no verdict: ")


def test_the_default_shows_means_numbers_of_questions_the_judge_and_the_next_step():
    shown = answers("evaluate", FIRST, "--reference", QUESTIONS).stdout
    assert shown.startswith("prompt-1: 20 questions\n")
    assert shown.count("judge: rules, not calibrated") == 1
    assert "--full" in shown
    full = answers("evaluate", FIRST, "--reference", QUESTIONS, "--full").stdout
    assert "retrieved but cut" in full
    assert "ContextIdRecall" in full


def test_a_reader_finds_the_seeded_faults_of_the_answers():
    """Counts from the list in the README of the sample."""
    words = ("--reference", QUESTIONS, "--verdicts", VERDICTS, "--as", "json")
    some = ("-m", "Completeness", "-m", "CitationPrecision", "-m", "Abstention")
    first = means(answers("evaluate", FIRST, *words, "-m", "Completeness", "-m", "Abstention"))
    # Of 18 references: q02 q13 q17 q18 q25 whole; q05 1/3, q08 1/2, q15 1/3, q21 1/2, q23 1/3,
    # q26 2/3; q09 q10 q11 q14 q20 q24 q30 none.
    assert first["Completeness"] == pytest.approx((5 + 1 / 3 + 0.5 + 1 / 3 + 0.5 + 1 / 3 + 2 / 3) / 18)
    assert first["Abstention"] == pytest.approx(1 / 20)
    second = means(answers("evaluate", SECOND, *words, *some))
    assert second["Completeness"] == pytest.approx(15 / 18)
    assert second["Abstention"] == pytest.approx(5 / 20)
    # Of 15 answers with citations, q17 cites a wrong context, and q26 has one of three claims
    # without support.
    assert second["CitationPrecision"] == pytest.approx((13 + 0 + 2 / 3) / 15)


def test_every_item_of_the_sample_has_a_verdict():
    keys = {verdict.key for verdict in read_verdicts(VERDICTS)}
    for path in (FIRST, SECOND):
        for record in AnswerSet.of(path, reference=QUESTIONS):
            assert {item.key for item in items_of(record, sentence_claims(record))} <= keys


def test_missing_verdicts_are_bounds(tmp_path):
    some = tmp_path / "some.jsonl"
    some.write_text("".join(VERDICTS.read_text().splitlines(keepends=True)[:50]))
    shown = answers("evaluate", FIRST, "--reference", QUESTIONS, "--verdicts", some).stdout
    assert "if all were judged" in shown
    assert "WARNING" in shown
    assert "1 more warning" in shown


def test_verdicts_of_a_store_are_used_by_judge(tmp_path):
    with VerdictStore(tmp_path / "v.db") as store:
        store.create()
        store.add(read_verdicts(VERDICTS))
    words = (FIRST, "--reference", QUESTIONS, "--store", tmp_path / "v.db", "-m", "Completeness")
    assert "judge: reader, not calibrated" in answers("evaluate", *words, "--judge", "reader").stdout
    refused = answers("evaluate", *words, "--judge", "ann", code=2).stderr
    assert "there are no verdicts of ann" in refused
    assert "judges: reader" in refused


def test_two_systems_are_shown_and_written(tmp_path):
    rows = [
        json.loads(line) | {"system": name}
        for name, path in (("a", FIRST), ("b", SECOND))
        for line in path.read_text().splitlines()
    ]
    both = tmp_path / "both.jsonl"
    both.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out.jsonl"
    words = ("-m", "KPrecision", "--set", "prompt=1", "-o", out)
    shown = answers("evaluate", both, *words).stdout
    assert "\n20 questions\n" in shown
    assert shown.startswith("b is worse than a by KPrecision: ")
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(each["run"], each["settings"]["prompt"]) for each in written] == [("a", 1), ("b", 1)]


def test_a_prompt_change_is_gated_and_saved(tmp_path):
    baseline = tmp_path / "baseline.json"
    words = ("--reference", QUESTIONS, "-m", "Completeness", "--baseline", baseline)
    accepted = (*words, "--allow-uncalibrated")
    answers("gate", FIRST, *accepted, "--update-baseline")
    refused = answers("gate", SECOND, *words, code=2).stderr
    assert "the judge of Completeness is not calibrated" in refused
    assert answers("gate", SECOND, *accepted).stdout.startswith("PASS: prompt-2")
    answers("gate", SECOND, *accepted, "--update-baseline")
    failed = answers("gate", FIRST, *accepted, code=1).stdout
    assert failed.startswith("FAIL: prompt-1")
    overlap = ("--reference", QUESTIONS, "-m", "TokenF1", "--baseline", tmp_path / "f1.json")
    answers("gate", FIRST, *overlap, "--update-baseline")


def test_in_a_project_the_result_of_a_gate_is_stored(tmp_path):
    (tmp_path / "rankgauge.toml").write_text("")
    words = ("answers", "gate", FIRST, "--reference", QUESTIONS, "-m", "TokenF1")
    assert run(*words, "--update-baseline", cwd=tmp_path).returncode == 0
    assert "saved" not in run(*words, "--no-save", cwd=tmp_path).stderr
    assert run(*words, cwd=tmp_path).returncode == 0
    (each,) = Gates(tmp_path / ".rankgauge" / "store.db").results()
    result = GateResult.from_json(each.body)
    assert (result.run_name, result.unit, result.verdict) == ("prompt-1", "question", each.verdict)


def test_a_judge_is_compared_with_people_and_then_gated(tmp_path):
    calibration, baseline = tmp_path / "calibration.json", tmp_path / "baseline.json"
    known = ("--reference", QUESTIONS)
    shown = answers("calibrate", FIRST, *known, "--human", VERDICTS, "-o", calibration).stdout
    assert "Calibration of rules" in shown
    reasons = " ".join(shown.split())
    assert "not usable for abstention, answer-question, context-question" in reasons
    words = (*known, "--calibration", calibration, "--baseline", baseline)
    answers("gate", FIRST, *words, "--update-baseline")
    assert answers("gate", SECOND, *words).stdout.startswith("PASS: prompt-2")
    refused = answers("gate", SECOND, *words, "-m", "AnswerRelevance", code=2).stderr
    assert "the judge of AnswerRelevance is not usable: calibrated on 27 labels" in refused


def test_verdicts_of_people_need_no_calibration():
    words = ("--reference", QUESTIONS, "--verdicts", VERDICTS, "-m", "Completeness")
    assert "judge: reader, a person" in answers("evaluate", FIRST, *words, "--person").stdout


def test_evaluations_are_saved_in_the_history(tmp_path):
    store = tmp_path / "history.db"
    words = ("--reference", QUESTIONS, "-m", "TokenF1", "--save", "--store", store)
    for number, path in ((1, FIRST), (2, SECOND)):
        answers("evaluate", path, *words, "--set", f"prompt={number}")
    done = run("history", "list", "--store", store)
    assert done.returncode == 0, done.stderr
    assert "prompt-1" in done.stdout
    assert "prompt-2" in done.stdout


def test_a_gate_of_answers_reports_questions_and_two_changes(tmp_path):
    words = ("--reference", QUESTIONS, "--allow-uncalibrated", "--baseline", tmp_path / "b.json")
    some = (*words, "-m", "Completeness", "-m", "Faithfulness")
    both = answers("gate", FIRST, *some, "--set", "prompt=1", "--set", "k=5", "--update-baseline")
    assert "Completeness 0.4259, Faithfulness 0.6447" in both.stdout
    changed = (*some, "--set", "prompt=2", "--set", "k=9")
    assert "quer" not in answers("gate", SECOND, *changed, code=4).stdout
    shown = " ".join(answers("gate", SECOND, *changed, "--full", code=4).stdout.split())
    assert "only 20 questions in common with the baseline:" in shown
    assert "5 questions had a value in the baseline and have none now (nothing to judge" in shown
    assert "2 things changed: prompt (1 → 2), k (5 → 9)" in shown
    refused = answers("gate", FIRST, *words, "-m", "TokenF1", code=4).stdout
    assert "has no TokenF1; update it" in " ".join(refused.split())


def test_a_band_reports_the_attainable_value():
    shown = answers("evaluate", FIRST, "--reference", QUESTIONS, "--full").stdout
    assert re.search(r"P@5 .* Poor \(best: Poor\) +84% of 0.211", shown)
    assert re.search(r"R@5 .* Excellent +83% of 1.000", shown)
    assert max(map(len, shown.splitlines())) <= 80


def test_the_default_fits_a_screen():
    lines = answers("evaluate", FIRST, "--reference", QUESTIONS).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 23


@pytest.mark.parametrize("name", ["bm25", "hashing"])
def test_a_search_lets_the_model_judge_what_the_collection_answers(tmp_path, name):
    file, collection = tmp_path / "answers.jsonl", tmp_path / "documents.jsonl"
    file.write_text('{"id": "q1", "question": "Where do pigs dig?", "answer": "Here."}')
    texts = [f"Pigs dig in place {n}." for n in range(12)]
    collection.write_text("".join(json.dumps({"_id": f"d{n}", "text": text}) + "\n" for n, text in enumerate(texts)))
    shown = []

    def answer(body, before):
        text, listed = asked(body)
        searched = "Pigs" in text
        shown.extend([text] if searched else [])
        label = "not answerable" if searched else "answers"
        return verdicts(*(entry(each["id"], label, "") for each in listed))

    store = tmp_path / "v.db"
    with serving(answer) as server:
        answers(
            "evaluate",
            file,
            "--url",
            server.url,
            "--model",
            "m",
            "--store",
            store,
            "--collection",
            collection,
            "--search",
            name,
            "-m",
            "RightAbstention",
        )
    with VerdictStore(store) as opened:
        (verdict,) = (each for each in opened.verdicts() if each.label == "not answerable")
    assert verdict.prompt.endswith("+search")
    (passages,) = shown
    assert len(set(passages.split("\n\n")) & set(texts)) == 10


# ---- criteria in plain language


def of_criterion(names):
    """Meets a criterion if the answer has a digit; the wording names the criterion."""

    def answer(body, before):
        text, listed = asked(body)
        names.update(each["criterion"] for each in listed)
        label = "met" if re.search(r"\d", text.split("\n\n")[1]) else "not met"
        return verdicts(*(entry(each["id"], label, "") for each in listed))

    return answer


def test_a_criterion_in_words_is_judged_and_has_the_name_that_python_gives_it(tmp_path):
    wording, seen = tmp_path / "short.txt", set()
    wording.write_text("The answer is short.\n")
    own = ("--criterion", "exact=The answer has a digit.", "--criterion", f"short=@{wording}")
    words = (FIRST, "--reference", QUESTIONS, "--store", tmp_path / "v.db", *own)
    some = (*words, "-m", "Criterion(name=exact)", "--as", "json")
    with serving(of_criterion(seen)) as server:
        found = means(answers("evaluate", *some, "--url", server.url, "--model", "m"))
        assert seen == {"The answer has a digit.", "The answer is short."}
        asked_for = len(server.bodies)
        assert means(answers("evaluate", *some, "--judge", "m")) == found
        assert len(server.bodies) == asked_for == 2 * 20
    records = AnswerSet.of(FIRST, reference=QUESTIONS).records
    digits = sum(bool(re.search(r"\d", each.answer)) for each in records) / 20
    assert found == pytest.approx({"Criterion(name=exact)": digits, "Criterion(name=short)": digits})
    with VerdictStore(tmp_path / "v.db") as store:
        ev = evaluate_answers(
            AnswerSet("a", records, criteria={"exact": "The answer has a digit.", "short": "The answer is short."}),
            store.verdicts(),
            "Criterion(name=exact)",
        )
    assert ev.mean() == found
    assert ev.settings["criteria"]["short"] == "The answer is short."


def test_a_criterion_is_calibrated_and_gated(tmp_path):
    polite = {"polite": "The answer is polite."}
    rows = []
    for path in (FIRST, SECOND):
        for record in AnswerSet.of(path, reference=QUESTIONS):
            for item in items_of(record, sentence_claims(record), polite):
                if item.relation == "criterion":
                    met = ("met", "not met")[int(record.id[1:]) % 2]
                    rows += [{"key": item.key, "label": met, "judge": judge} for judge in ("ann", "bot")]
    people, bot = tmp_path / "people.jsonl", tmp_path / "bot.jsonl"
    people.write_text("".join(json.dumps(row) + "\n" for row in rows if row["judge"] == "ann"))
    bot.write_text("".join(json.dumps(row) + "\n" for row in rows if row["judge"] == "bot"))
    calibration, baseline = tmp_path / "calibration.json", tmp_path / "baseline.json"
    own = ("--reference", QUESTIONS, "--verdicts", bot, "--criterion", f"polite={polite['polite']}")
    shown = answers("calibrate", FIRST, *own, "--human", people, "-o", calibration).stdout
    assert "criterion polite" in shown
    words = (*own, "--baseline", baseline)
    written = answers("gate", FIRST, *words, "--update-baseline")
    assert "Criterion(name=polite)" in written.stdout
    assert "not calibrated" in answers("gate", FIRST, *words, code=2).stderr
    words = (*words, "--calibration", calibration)
    answers("gate", FIRST, *words, "--update-baseline")
    passed = answers("gate", FIRST, *words).stdout
    assert "Criterion(name=polite)" in passed
    assert "baseline.anchor.json was not compared: the judge of" in " ".join(
        answers("gate", FIRST, *words, "--full").stdout.split()
    )
    assert "Completeness" not in passed


# ---- encoders


def test_similarity_by_an_encoder_is_that_of_python():
    words = (FIRST, "--reference", QUESTIONS, "--encoder", "hashing")
    found = means(answers("evaluate", *words, "--as", "json"))
    names = ("AnswerSimilarity", "QuestionSimilarity", "ContextSimilarity")
    ev = evaluate_answers(AnswerSet.of(FIRST, reference=QUESTIONS), {}, names, encoder=HashingEncoder())
    assert {name: found[name] for name in names} == ev.mean()
    assert ev.settings["encoder"] == "hashing 2048"
    assert "ContextSimilarity" in answers("evaluate", *words, "--full").stdout


def test_embeddings_of_a_server_are_requested_once(tmp_path):
    def embedded(body, _before):
        rows = [{"index": n, "embedding": [float(len(text)), 1.0]} for n, text in enumerate(body["input"])]
        return 200, {}, {"data": rows}

    with serving(embedded) as server:
        encoder = ("--encoder", f"openai-embeddings:small@{server.url}")
        words = ("--reference", QUESTIONS, *encoder, "--cache", tmp_path / "replies.db")
        some = (FIRST, *words, "-m", "AnswerSimilarity", "--as", "json")
        found = answers("evaluate", *some)
        sent = len(server.bodies)
        assert sent > 0
        assert means(answers("evaluate", *some)) == means(found)
        assert len(server.bodies) == sent
        assert server.bodies[0]["model"] == "small"


WRONG = {
    "--encoder magic": "choose hashing, use-multilingual, model2vec:NAME",
    "--encoder openai-embeddings:small": "openai-embeddings:NAME@URL",
    "--encoder openai-embeddings:s@http://127.0.0.1:1": "127.0.0.1:1",
    "--criterion polite": "expected NAME=WORDING|@FILE",
    "--criterion polite=": "expected NAME=WORDING|@FILE",
    "--criterion a=X --criterion a=Y": "each NAME once",
    "--criterion a=@none.txt": "there is no such file",
    "--criterion a=X": "rules cannot judge a --criterion",
    f"--criterion a!=X --verdicts {VERDICTS}": "letters, digits, hyphens, and underscores",
    "-m Criterion(name=a)": "--criterion a=",
    "--dry-run": "need a model",
    "--claims model": "need a model",
    "--store h.db": "without a model",
    "--search bm25 --collection x": "--search need a model",
    "--url http://localhost:1/v1 --model m --store v.db --search bm25": "--collection FOLDER",
    "--url http://localhost:1/v1 --model m --store v.db --collection "
    f"{sample_path('qrels.txt').parent} --search bm": "fix: choose bm25, hashing, use-multilingual, model2vec:NAME",
    "--url http://localhost:1/v1": "needs both --url URL and --model NAME",
    "--url http://localhost:1/v1 --model m --verdicts v.jsonl": "a model adds verdicts to the store",
    "-m nDCG@10": "is not a measure of answers",
    "-m AnswerSimilarity": "needs an encoder",
    "--reference none.jsonl": "there is no such file",
    "-o no/folder.json": "there is no folder",
}


@pytest.mark.parametrize("claims", ["sentences", "model"])
@pytest.mark.parametrize("command", ["evaluate", "gate"])
def test_a_model_that_never_replies_gives_an_error_and_no_value(tmp_path, command, claims):
    """A context is blank, and judged without the model: its 0 is no mean."""
    file, store = tmp_path / "answers.jsonl", tmp_path / "v.db"
    rows = [{"id": f"q{n}", "question": "How high?", "answer": f"It is {n} m high."} for n in (1, 2)]
    file.write_text("".join(f"{json.dumps(row | {'contexts': ['']})}\n" for row in rows[:1]))
    with file.open("a") as stream:
        stream.write(json.dumps(rows[1] | {"contexts": ["The tower is 2 m high."]}))
    words = (file, "--store", store, "--model", "m", "-m", "Faithfulness", "--claims", claims)
    options = ("--allow-uncalibrated",) if command == "gate" else ()
    refusing = (400, {}, {"error": "the context is too long"})
    with serving(lambda *_: refusing) as server:
        for _ in range(2):  # the verdict on the blank context is stored
            done = answers(command, *words, *options, "--url", server.url, code=2)
            assert "Faithfulness" not in done.stdout
            assert "the server answered 400" in done.stderr
            assert "fix: " in done.stderr
            said = "no reply of the model can be used: server: "
            assert (said in done.stderr) == (claims == "sentences")


def test_some_missing_verdicts_give_bounds(tmp_path):
    file = tmp_path / "answers.jsonl"
    rows = [
        {"id": f"q{n}", "question": "?", "answer": f"Pigs are {n}.", "contexts": [f"Pigs are {n}."]} for n in range(4)
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def answer(body, before):
        text, listed = asked(body)
        if before == 0:
            return 400, {}, {"error": "no"}
        return verdicts(*(entry(each["id"], "supported", text) for each in listed))

    with serving(answer) as server:
        done = answers(
            "evaluate",
            file,
            "--url",
            server.url,
            "--model",
            "m",
            "--store",
            tmp_path / "v.db",
            "-m",
            "Faithfulness",
            "--as",
            "json",
        )
    (found,) = json.loads(done.stdout)["measures"]
    assert found["mean"] == 1.0
    assert "1 missing" in done.stderr
    assert "server: the server answered 400" in done.stderr


@pytest.mark.parametrize("words", WRONG)
def test_invalid_arguments_are_refused_with_a_fix(words, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)  # between retries
    assert WRONG[words] in answers("evaluate", FIRST, *words.split(), code=2).stderr


def test_a_dry_run_sends_nothing(tmp_path):
    model = ("--url", "http://localhost:1/v1", "--model", "m", "--store", tmp_path / "v.db")
    done = answers("evaluate", FIRST, "--reference", QUESTIONS, *model, "--dry-run")
    assert "dry run, nothing was sent" in done.stderr
    assert "calls" in done.stderr
