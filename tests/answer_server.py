"""A server that acts as a judge and records its requests."""

import json
import re

from loopback import completion

from rankgauge.answers import AnswerRecord, AnswerSet, Claim, ClaimSet, Context

FENCE = re.compile(r"<<<DATA (\w+)>>>\n(.*?)\n<<<END \1>>>", re.DOTALL)


def asked(body):
    """Return the text and the listed items of a request."""
    (mark, text), (other, listed) = FENCE.findall(body["messages"][1]["content"])
    assert mark == other
    return text, [json.loads(line) for line in listed.splitlines()]


def entry(number, label="supported", quote="Nile", reason="It says so."):
    return {"id": str(number), "quote": quote, "reason": reason, "label": label}


def verdicts(*entries):
    return completion(json.dumps({"verdicts": list(entries)}))


def supporting(body, _before):
    """Support every claim with the first sentence of the text."""
    text, listed = asked(body)
    return verdicts(*(entry(each["id"], quote=text.partition(".")[0]) for each in listed))


def answers(questions=1, claims=3, contexts=1, text="Nile water {}."):
    """Return answers with this many claims."""
    records = tuple(
        AnswerRecord(
            f"q{n}",
            f"Where is river {n}?",
            f"Answer {n}.",
            tuple(Context(f"c{m}", text.format(f"{n} {m}")) for m in range(contexts)),
        )
        for n in range(questions)
    )
    made = {
        record.id: ClaimSet(tuple(Claim(f"Nile claim {m} of {record.id}") for m in range(claims))) for record in records
    }
    return AnswerSet("a", records, claims=lambda record: made[record.id])
