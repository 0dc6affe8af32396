"""Judging a set of answers: requests, stored and missing verdicts, resumption, and counts."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from answer_server import answers, asked, entry, supporting, verdicts
from loopback import serving

from rankgauge.answers import (
    AnswerRecord,
    AnswerSet,
    CallableJudge,
    Context,
    MissingVerdict,
    ModelJudge,
    RuleJudge,
    Verdict,
    VerdictStore,
    counted_labels,
    evaluate_answers,
    judge_answers,
)
from rankgauge.answers.verdicts import LABELS
from rankgauge.core.progress import showing
from rankgauge.errors import InputError
from rankgauge.llm import ChatModel

MEASURE = {"measures": "Faithfulness"}


@pytest.fixture
def store(tmp_path):
    with VerdictStore(tmp_path / "verdicts.db") as made:
        yield made


class Recorder:
    """A judge that supports everything and records its calls."""

    name = "recorder"

    def __init__(self, version="1"):
        self.items, self.prompt = [], version

    def version(self, relation):
        return self.prompt

    def judge(self, items, replicate=0):
        self.items += items
        for item in items:
            yield Verdict(item.key, LABELS[item.relation][0], self.name)


RECORD = AnswerRecord("q", "Where?", "In Burundi. It is far.", (Context("a", "A."), Context("b", "B.")), "Burundi.")


@pytest.mark.parametrize(
    ("measures", "relations"),
    [
        ("Faithfulness", {"answer-context": 4}),
        (["Faithfulness", "NotStated"], {"answer-context": 4}),
        ("ContextRecall", {"reference-context": 2}),
        (["ContextRelevance", "AnswerRelevance"], {"context-question": 2, "answer-question": 2}),
    ],
)
def test_only_relations_that_the_measures_need_are_judged(store, measures, relations):
    judge = Recorder()
    judge_answers(AnswerSet("a", (RECORD,)), judge, store, measures=measures)
    assert Counter(item.relation for item in judge.items) == relations


def test_only_items_without_a_verdict_of_this_judge_and_version_are_judged(store):
    given = AnswerSet("a", (RECORD,))
    first = Recorder()
    judge_answers(given, first, store, **MEASURE)
    again = Recorder()
    done = judge_answers(given, again, store, **MEASURE)
    assert (len(first.items), again.items, done.before, done.judged) == (4, [], 4, 0)
    newer = Recorder("2")
    judge_answers(given, newer, store, **MEASURE)
    assert newer.items == first.items
    other = Recorder()
    other.name = "somebody else"
    judge_answers(given, other, store, **MEASURE)
    assert other.items == first.items
    assert [each.prompt for each in store.verdicts("recorder")] == ["1"] * 4 + ["2"] * 4


def test_items_that_two_systems_share_are_judged_once(store):
    judge = Recorder()
    for system, answer in (("a", "In Burundi."), ("b", "In Kenya.")):
        record = AnswerRecord("q", "Where?", answer, RECORD.contexts, "Burundi.")
        judge_answers(AnswerSet(system, (record,)), judge, store, measures="ContextRecall")
    assert [item.relation for item in judge.items] == ["reference-context"] * 2


def test_a_missing_verdict_is_counted_and_requested_again(store):
    def declining(items):
        return [None if "far" in item.subject else "supported" for item in items]

    given = AnswerSet("a", (RECORD,))
    done = judge_answers(given, CallableJudge(declining, "j"), store, **MEASURE)
    assert (done.judged, done.missing) == (2, {"cannot judge": 2})
    assert "missing: cannot judge" in str(done)
    judge = Recorder()
    judge.name, judge.prompt = "j", "1"
    judge_answers(given, judge, store, **MEASURE)
    assert [item.subject for item in judge.items] == ["It is far."] * 2


def test_items_that_a_judge_leaves_out_are_missing(store):
    class Lazy(Recorder):
        def judge(self, items, replicate=0):
            yield Verdict(items[0].key, "supported", "x")
            yield MissingVerdict(items[1].key, "server", "down")

    done = judge_answers(AnswerSet("a", (RECORD,)), Lazy(), store, **MEASURE)
    assert (done.items, done.judged, done.missing) == (4, 1, {"server": 1, "no verdict": 2})
    assert store.verdicts()[0].judge == "recorder"


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        (lambda item: Verdict("unknown", "supported", "x"), "not an item to judge"),
        (lambda item: Verdict(item.key, "relevant", "x"), "is not a verdict on answer-context"),
    ],
)
def test_a_verdict_on_something_else_is_refused(store, verdict, message):
    class Confused(Recorder):
        def judge(self, items, replicate=0):
            yield Verdict(items[0].key, "supported", "x")
            yield verdict(items[1])

    with pytest.raises(InputError, match=message):
        judge_answers(AnswerSet("a", (RECORD,)), Confused(), store, **MEASURE)
    assert len(store.verdicts()) == 1  # earlier verdicts are kept


def test_criteria_of_the_user_are_judged(store):
    seen = []

    def model(items):
        seen.extend(items)
        return ["met"] * len(items)

    criteria = {"polite": "The answer is polite.", "short": "The answer is short."}
    done = judge_answers(AnswerSet("a", (RECORD,), criteria=criteria), CallableJudge(model, "j"), store, measures=[])
    assert [(item.relation, item.name) for item in seen] == [("criterion", "polite"), ("criterion", "short")]
    assert done.labels == {"criterion": {"met": 2}}


def test_progress_reaches_the_number_of_items(store):
    seen = []
    with showing(lambda share, done: seen.append((share, done))):
        judge_answers(AnswerSet("a", (RECORD,)), Recorder(), store, **MEASURE)
    assert seen == [(share, "judged") for share in (0.25, 0.5, 0.75, 1.0)]


def test_a_result_is_a_table_json_and_a_sentence(store):
    done = judge_answers(AnswerSet("a", (RECORD,)), RuleJudge(), store, **MEASURE)
    assert "answer-context: not stated" in str(done)
    assert json.loads(done.to_json())["judged"] == 4
    assert done.summary() == "rules: 4 new verdicts, 0 missing"


# ---- replicates


def test_replicates_are_requested_separately_and_the_majority_counts(store, tmp_path):
    given = answers(claims=3)
    labels = ["supported", "not stated", "supported"]

    def answer(body, before):
        text, listed = asked(body)
        return verdicts(*(entry(each["id"], labels[body["seed"] - 5], text.split()[0]) for each in listed))

    with serving(answer) as server:
        model = ChatModel(server.url, "m", seed=5, cache=tmp_path / "replies.db")
        judge = ModelJudge(model)
        done = judge_answers(given, judge, store, replicates=3, **MEASURE)
        assert (done.items, done.judged, len(server.bodies)) == (9, 9, 3)
        ev = evaluate_answers(given, store.verdicts(), "Faithfulness")
        assert ev.mean() == {"Faithfulness": 1.0}
        assert store.labels() == counted_labels(store.verdicts())
        # More replicates send only the additional calls; a tie is a missing verdict.
        labels.append("not stated")
        done = judge_answers(given, judge, store, replicates=4, **MEASURE)
        assert (done.before, done.judged, len(server.bodies)) == (9, 3, 4)
        assert store.labels() == {}


def test_the_last_judge_and_version_counts(store):
    def verdict(label, judge="m", prompt="1", replicate=0):
        return Verdict("k", label, judge, prompt, replicate=replicate)

    cases = [
        ([verdict("a"), verdict("b")], {"k": "b"}),
        ([verdict("a"), verdict("a", replicate=1), verdict("b", replicate=2)], {"k": "a"}),
        ([verdict("a"), verdict("b", replicate=1)], {}),
        ([verdict("a"), verdict("b", replicate=1), verdict("b")], {"k": "b"}),
        ([verdict("a"), verdict("a", replicate=1), verdict("b", prompt="2")], {"k": "b"}),
        ([verdict("a"), verdict("a", replicate=1), verdict("b", judge="ann")], {"k": "b"}),
        ([verdict("a"), verdict("b", judge="x"), verdict("a", replicate=1)], {"k": "a"}),
    ]
    for some, expected in cases:
        assert counted_labels(some) == expected
    for some, _ in cases:
        store.add(some)
    assert store.labels() == counted_labels(store.verdicts())
    assert store.labels("ann") == {"k": "b"}


# ---- caches, and killed processes


def test_verdicts_are_not_shared_between_models(store, tmp_path):
    given = answers()

    def answer(body, before):
        text, listed = asked(body)
        label = "supported" if body["model"] == "kind" else "not stated"
        return verdicts(*(entry(each["id"], label, text.split()[0]) for each in listed))

    with serving(answer) as server:
        for name, label in (("kind", "supported"), ("strict", "not stated")):
            judge = ModelJudge(ChatModel(server.url, name, cache=tmp_path / "replies.db"))
            judge_answers(given, judge, store, **MEASURE)
            assert set(store.labels(name).values()) == {label}
        assert [body["model"] for body in server.bodies] == ["kind", "strict"]


WORK = """
import sys
sys.path.insert(0, sys.argv[4])
from answer_server import answers
from rankgauge.answers import ModelJudge, VerdictStore, judge_answers
from rankgauge.llm import ChatModel
given = answers(questions=12, claims=20)
judge = ModelJudge(ChatModel(sys.argv[1], "small", cache=sys.argv[2], concurrency=4))
done = judge_answers(given, judge, VerdictStore(sys.argv[3]), measures=["Faithfulness"])
print(done.before, done.judged, done.missing)
"""
CALLS = 12 * 3  # 20 claims are 3 calls


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_a_run_that_is_killed_is_resumed_without_paying_twice(tmp_path, how):
    half, resumed = threading.Event(), threading.Event()
    replied = []

    def answer(body, before):
        if before == 16:
            half.set()
        # The signal has to arrive while calls are in progress, however slow the machine is.
        time.sleep(0.03 if before < 16 or resumed.is_set() else 0.5)
        replied.append(json.dumps(body))
        return supporting(body, before)

    def process():
        words = [server.url, tmp_path / "r.db", tmp_path / "v.db", Path(__file__).parents[1]]
        return subprocess.Popen(
            [sys.executable, "-c", WORK, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    with serving(answer) as server:
        killed = process()
        assert half.wait(120)
        killed.send_signal(how)
        killed.communicate(timeout=120)
        assert killed.returncode != 0
        resumed.set()
        kept = 0
        if (tmp_path / "v.db").exists():
            with VerdictStore(tmp_path / "v.db") as store:
                kept = len(store.verdicts())
        out, err = process().communicate(timeout=120)
        assert (err, out) == ("", f"{kept} {240 - kept} {{}}\n")
        done = len(server.bodies)
        given = answers(questions=12, claims=20)
        judge = ModelJudge(ChatModel(server.url, "small", cache=tmp_path / "r.db"))
        with VerdictStore(tmp_path / "v.db") as store:
            again = judge_answers(given, judge, store, **MEASURE)
        assert (again.before, again.judged, len(server.bodies)) == (240, 0, done)
    # After the server has ended, it has read all requests; only the calls in progress (at most
    # four) are sent again.
    assert len(set(replied)) == CALLS
    assert len(replied) - CALLS <= (4 if how == signal.SIGKILL else 0)


# Forks a process for every eighth (or 32nd) line that runs after the first call; it is killed when it reaches
# that line for the last time.
AT_EACH_LINE = """
import os, signal, sys, threading
sys.path.insert(0, sys.argv[2])
import sqlalchemy.dialects.sqlite, alembic.command, httpx  # before the processes part
from answer_server import answers
from rankgauge.answers import ModelJudge, VerdictStore, judge_answers
from rankgauge.answers import model_judge, runner, store
from rankgauge.llm import ChatModel, cache, chat
url, folder = sys.argv[1], sys.argv[3]
FILES = {module.__file__ for module in (model_judge, runner, store, cache, chat)}
given = answers(questions=2, claims=5)
cache._RENEWAL, cache._LEASE = 0.1, 0.6  # otherwise each claim of a killed process costs 6 seconds
store.store_in_batches.__kwdefaults__["every"] = 0.0  # as if each call took long

def work(number):
    judge = ModelJudge(ChatModel(f"{url}/{number}", "small", cache=f"{folder}/{number}-replies.db",
                                 concurrency=1))
    done = judge_answers(given, judge, VerdictStore(f"{folder}/{number}.db"),
                         measures=["Faithfulness"])
    return done.before + done.judged

def ended(call):
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    child = os.fork()
    if not child:
        os._exit(call())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def traced(visit):
    def each(frame, event, _):
        if frame.f_code.co_filename in FILES:
            if event == "line":
                visit((os.path.basename(frame.f_code.co_filename), frame.f_lineno))
            return each
    threading.settrace(each)
    sys.settrace(each)

lines = f"{folder}/lines"
def record():
    seen, began = {}, []
    def visit(line):
        began.append(sys._getframe(2).f_code.co_name == "_work") if not (began and began[-1]) else 0
        seen[line] = [seen.get(line, [0])[0] + 1, began[-1]]
    traced(visit)
    total = work("whole")
    sys.settrace(None)
    with open(lines, "w") as file:
        file.writelines(f"{name} {number} {times}\\n"
                        for (name, number), (times, late) in seen.items() if late)
    return total

def killed(line, times, number):
    count = [0]
    def visit(at):
        if at == line:
            count[0] += 1
            if count[0] == times:
                os.kill(os.getpid(), signal.SIGKILL)
    traced(visit)
    work(number)
    return 0

print("whole", ended(record), flush=True)
for place, (name, line, times) in enumerate(map(str.split, list(open(lines))[:: int(sys.argv[4])])):
    if ended(lambda: killed((name, int(line)), int(times), place)) == -signal.SIGKILL:
        print(place, ended(lambda: work(place)), name, line, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are killed in forks")
def test_a_kill_at_any_statement_repeats_at_most_one_paid_call(tmp_path):
    """The first reply omits three of five claims, so these are sent again, one by one."""

    def answer(body, _before):
        text, listed = asked(body)
        some = listed[:2] if len(listed) > 2 else listed
        return verdicts(*(entry(each["id"], quote=text.split()[0]) for each in some))

    step = "8" if "ROUNDS" in os.environ else "32"  # of make test-stores, or make test-slow
    with serving(answer) as server:
        done = subprocess.run(
            [sys.executable, "-c", AT_EACH_LINE, server.url, Path(__file__).parents[1], tmp_path, step],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        sent = Counter(path.split("/")[1] for path in server.paths)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert len(rows) > 6
    for number, judged, *_ in rows:
        assert judged == "10", number
    more = {number: sent[number] - sent["whole"] for number, *_ in rows}
    where = {number: line for number, _, *line in rows}
    assert {where[number][0] for number in more if more[number]} <= {"chat.py", "cache.py"}
    assert max(more.values()) == 1


def test_a_store_can_be_completed_after_a_permanent_server_failure(store):
    given = answers(questions=30)

    def answer(body, before):
        return supporting(body, before) if before < 5 else (500, {}, {"error": "oops"})

    with serving(answer) as server:
        model = ChatModel(server.url, "small", retries=0, concurrency=1)
        done = judge_answers(given, ModelJudge(model), store, **MEASURE)
    assert done.judged == 15
    assert done.missing == {"server": 30, "skipped": 45}
    assert "500" in done.failures[0]
    with serving(supporting) as server:
        model = ChatModel(server.url, "small")
        done = judge_answers(given, ModelJudge(model), store, **MEASURE)
        assert (done.before, done.judged, len(server.bodies)) == (15, 75, 25)


def test_a_rejected_key_ends_the_run_and_is_reported(store):
    given = answers(questions=30)
    with serving(lambda *_: (401, {}, {"error": {"message": "bad key"}})) as server:
        model = ChatModel(server.url, "small", concurrency=1)
        done = judge_answers(given, ModelJudge(model), store, **MEASURE)
        assert len(server.bodies) == 1
    assert done.missing == {"server": 3, "skipped": 87}
    assert "bad key" in str(done)
