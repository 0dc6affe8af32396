"""Online metrics by slow loops over events, from their definitions; and random events."""

import random
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from rankgauge.core.abstention import abstains


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a log: one row of its Parquet files."""

    event_id: str
    kind: str
    time: datetime
    question_id: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    arm: str | None = None
    text: str | None = None
    documents: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    value: float | None = None
    label: str | None = None
    latency_ms: float | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    source: str = ""


START = datetime(2026, 5, 1, tzinfo=UTC)
ANSWERS = ("I don't know.", "Yes. It is.", "The context does not say it.", "No, it isn't.", "")
WORDS = ("late", "fees", "return", "books", "card")
SCHEMA = pa.schema(
    {
        "event_id": pa.string(),
        "kind": pa.string(),
        "time": pa.timestamp("us", "UTC"),
        "question_id": pa.string(),
        "session_id": pa.string(),
        "user_id": pa.string(),
        "arm": pa.string(),
        "text": pa.string(),
        "documents": pa.list_(pa.string()),
        "ranks": pa.list_(pa.int32()),
        "value": pa.float64(),
        "label": pa.string(),
        "latency_ms": pa.float64(),
        "attributes": pa.map_(pa.string(), pa.string()),
    }
)


def write_events(path, events):
    """Write events as a log, with empty values as NULL."""
    rows = [
        {name: getattr(event, name) or None for name in SCHEMA.names}
        | {"value": event.value, "latency_ms": event.latency_ms, "text": event.text}
        # An empty ranking is recorded.
        | ({"documents": list(event.documents)} if event.kind == "retrieval" else {})
        | {"attributes": list(event.attributes.items()) or None}
        for event in events
    ]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path)
    return path


def random_events(seed, questions=40, users=6, *, abstentions=True):  # noqa: C901 - one kind of event after the other
    """Return random events of questions, with all optional parts present or missing."""
    rng = random.Random(seed)
    events = []
    for number in range(questions):
        asked = START + timedelta(minutes=rng.randrange(60 * 24 * 10))
        user = f"u{rng.randrange(users)}"
        shared = {
            "question_id": f"q{number}",
            "session_id": f"{user}-s{rng.randrange(2)}" if rng.random() < 0.9 else None,
            "user_id": user if rng.random() < 0.9 else None,
            "arm": rng.choice(("A", "B")),
            "attributes": {"language": rng.choice(("de", "en"))} if rng.random() < 0.8 else {},
        }

        def add(kind, seconds, shared=shared, asked=asked, **fields):
            name = f"e{len(events)}"
            events.append(Event(name, kind, asked + timedelta(seconds=seconds), **shared, **fields))

        add("question", 0, text=" ".join(rng.sample(WORDS, rng.randint(1, 3))))
        found = rng.choice((0, 3, 3))
        if rng.random() < 0.8:
            add(
                "retrieval",
                1,
                documents=tuple(f"d{n}" for n in range(found)),
                ranks=tuple(range(1, found + 1)),
                latency_ms=rng.randint(1, 900),
            )
        if rng.random() < 0.6 and found:
            add("impression", 2, documents=("d0", "d1"), ranks=(1, 2))
        for second in range(rng.choice((0, 0, 1, 3))):
            rank = rng.randint(1, 3)
            ranks = (rank,) if rng.random() < 0.9 else ()
            add("click", 3 + second, documents=(f"d{rank - 1}",), ranks=ranks)
        if rng.random() < 0.7:
            add("answer", 8, text=rng.choice(ANSWERS), latency_ms=rng.choice((None, 50, 700)))
        if abstentions and rng.random() < 0.2:
            add("abstention", 9)
        for citation in range(rng.choice((0, 1, 2))):
            add("citation", 9, documents=(f"d{citation}",))
            if rng.random() < 0.3:
                add("citation click", 10, documents=(f"d{citation}",))
        for second in range(rng.choice((0, 0, 1, 2))):
            add("thumbs", 20 + second, value=rng.choice((-1, 1)))
        if rng.random() < 0.3:
            value = rng.choice((-1, 0, 1, None))
            add("preference", 30, value=value, label="both bad" if value is None else None)
        if rng.random() < 0.2:
            add("handover", 40)
        if rng.random() < 0.4:
            add("label", 50, value=rng.choice((0, 1)))
    rng.shuffle(events)
    return events


class Question:
    """The events of one question."""

    def __init__(self, name, events):
        self.name, self.events = name, sorted(events, key=lambda event: event.time)
        self.asked = next(e for e in self.events if e.kind == "question")
        self.session, self.user = self.asked.session_id, self.asked.user_id
        self.cluster = self.user or self.session or name
        self.following = None

    def of(self, kind):
        return [event for event in self.events if event.kind == kind]

    def last(self, kind):
        found = self.of(kind)
        return found[-1] if found else None

    def shown(self):
        return sum(len(event.documents) for event in self.of("impression"))

    def clicked(self, kind="click"):
        return len({event.documents[0] for event in self.of(kind)})

    def retrieved(self):
        found = self.of("retrieval")
        return len(found[0].documents) if found else None

    def abstained(self, by_rule):
        if not by_rule:
            return bool(self.of("abstention"))
        answer = self.last("answer")
        return answer is not None and abstains(answer.text)

    def latency(self):
        for kind in ("answer", "retrieval"):
            known = [e.latency_ms for e in self.of(kind) if e.latency_ms is not None]
            if known:
                return max(known)
        return None

    def reformulated(self, minutes, similarity):
        if self.following is None:
            return False
        one, other = (set(re.findall(r"\w+", q.asked.text)) for q in (self, self.following))
        near = len(one & other) / (len(one) * len(other)) ** 0.5 >= similarity - 1e-12
        return near and self.following.asked.time - self.asked.time <= timedelta(minutes=minutes)


def questions_of(events):
    by_name = defaultdict(list)
    for event in events:
        by_name[event.question_id].append(event)
    questions = [Question(name, own) for name, own in by_name.items()]
    questions.sort(key=lambda question: (question.asked.time, question.name))
    for place, question in enumerate(questions):
        if question.session is not None:
            later = (q for q in questions[place + 1 :] if q.session == question.session)
            question.following = next(later, None)
    return questions


def pairs(questions, minutes=10, similarity=0.5, *, by_rule=False):  # noqa: C901, PLR0912 - one metric after the other
    """Return (cluster, numerator, denominator) of each unit that counts, by name of the metric."""
    found = defaultdict(list)
    sessions = defaultdict(list)
    for q in questions:
        rated, shown, clicks = q.last("thumbs"), q.shown(), q.of("click")
        answered, abstained = bool(q.of("answer")), q.abstained(by_rule)
        retrieved, cited = q.retrieved(), len(q.of("citation"))

        def count(name, above, q=q, below=1):
            found[name].append((q.cluster, float(above), float(below)))

        if rated is not None:
            count("thumbs_ratio", rated.value == 1)
        if answered:
            count("feedback_rate", rated is not None)
        if answered or abstained:
            count("idk_rate", abstained)
            label = q.last("label")
            if label is not None:
                count("wrong_idk_rate" if label.value == 1 else "right_idk_rate", abstained)
        if q.session is not None:
            sessions[q.session].append(q)
            count("reformulation_rate", q.reformulated(minutes, similarity))
        if retrieved or shown:
            acted = clicks or q.of("citation click") or rated is not None
            soon = q.following is not None and (q.following.asked.time - q.asked.time <= timedelta(minutes=minutes))
            count("abandonment_rate", not acted and not soon)
        if retrieved is not None:
            count("no_result_rate", retrieved == 0)
        if retrieved is not None or shown:
            count("search_ctr", bool(clicks))
        if shown:
            count("result_ctr", min(q.clicked(), shown), below=shown)
        ranks = [event.ranks[0] for event in clicks if event.ranks]
        if ranks:
            count("click_mrr", 1 / min(ranks))
            count("click_rank", ranks[0])
        if cited:
            clicked = q.clicked("citation click")
            count("citation_ctr", clicked > 0)
            count("citation_click_rate", min(clicked, cited), below=cited)
        preferred = q.last("preference")
        if preferred is not None:
            count("both_bad_rate", preferred.value is None)
            if preferred.value is not None:
                count("win_rate", {1: 1, 0: 0.5, -1: 0}[preferred.value])
    for own in sessions.values():
        handed = any(q.of("handover") for q in own)
        cluster = min(q.cluster for q in own)
        found["containment_rate"].append((cluster, float(not handed), 1.0))
    return found
