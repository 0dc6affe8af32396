"""Verdicts from files: by key, by position, and invalid ones."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from rankgauge import InputError
from rankgauge.answers import (
    AnswerRecord,
    AnswerSet,
    Calibration,
    Context,
    Verdict,
    VerdictStore,
    items_of,
    read_verdicts,
    sentence_claims,
)
from rankgauge.answers.store import store_in_batches
from rankgauge.cli.answers import answers as command

RECORDS = tuple(
    AnswerRecord(
        f"q{n}",
        "How high is the tower?",
        f"Tower {n} is {n} m high. It has {n} floors.",
        (Context("d1", f"The tower {n} is {n} m high."), Context("d2", "Bridges are long.")),
    )
    for n in range(1, 41)
)
ANSWERS = AnswerSet("a", RECORDS)
PLACE = {"record": "q2", "relation": "answer-context", "row": 1, "column": 0}


def key_of(answers=ANSWERS, **place):
    wanted = {**PLACE, **place}
    (found,) = {
        item.key
        for record in answers
        for item in items_of(record, sentence_claims(record))
        if all(getattr(item, name) == value for name, value in wanted.items())
    }
    return found


def test_an_item_is_found_by_position_and_by_key(tmp_path):
    rows = [
        PLACE | {"label": "not stated", "judge": "ann"},
        {"key": key_of(), "label": "supported", "prompt": "v1", "replicate": 2},
    ]
    lines = tmp_path / "labels.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = tmp_path / "labels.csv"
    table.write_text("record,relation,row,column,label,judge\nq2,answer-context,1,0,supported,bob\n")
    first, second = read_verdicts(lines, ANSWERS)
    assert first.key == second.key == key_of()
    assert (first.judge, second.judge) == ("ann", "unknown")
    assert (second.prompt, second.replicate) == ("v1", 2)
    (third,) = read_verdicts(table, [ANSWERS])
    assert (third.key, third.label, third.judge) == (key_of(), "supported", "bob")
    assert read_verdicts([{"key": "other", "label": "met"}])[0].key == "other"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (PLACE | {"label": "yes"}, "got the label 'yes'.*supported, contradicted, not stated"),
        (PLACE | {"label": "relevant"}, "got the label"),
        (PLACE | {"row": 7, "label": "supported"}, "no item answer-context of 'q2', row 7"),
        (PLACE | {"row": "x", "label": "supported"}, "row is 'x'"),
        (PLACE | {"record": "q99", "label": "supported"}, "no item"),
        ({"label": "supported"}, "no relation"),
    ],
    ids=["label", "relation", "row", "number", "record", "nothing"],
)
def test_an_invalid_label_is_refused_with_its_record(row, message):
    good = PLACE | {"label": "supported"}
    with pytest.raises(InputError, match=f"(?s)record 2.*{message}|{message}.*"):
        read_verdicts([good, row], ANSWERS)
    with pytest.raises(InputError, match="no label"):
        read_verdicts([], ANSWERS)


def test_with_several_systems_the_system_is_named():
    other = AnswerSet(
        "b",
        tuple(
            AnswerRecord(r.id, r.question, f"{r.answer} So it is.".replace("floors", "rooms"), r.contexts)
            for r in RECORDS
        ),
    )
    row = PLACE | {"label": "supported"}
    with pytest.raises(InputError, match="several systems"):
        read_verdicts([row], [ANSWERS, other])
    (found,) = read_verdicts([row | {"system": "b"}], [ANSWERS, other])
    assert found.key == key_of(other)


def test_the_command_compares_writes_and_corrects(tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text(
        "".join(
            json.dumps(
                {
                    "id": r.id,
                    "question": r.question,
                    "answer": r.answer,
                    "contexts": [{"id": c.id, "text": c.text} for c in r.contexts],
                }
            )
            + "\n"
            for r in RECORDS
        )
    )
    human = tmp_path / "labels.jsonl"
    human.write_text(
        "".join(
            json.dumps(
                {
                    "record": f"q{n}",
                    "relation": "answer-context",
                    "row": row,
                    "column": column,
                    "label": "supported" if row == column == 0 and n % 9 else "not stated",
                }
            )
            + "\n"
            for n in range(1, 31)
            for row in (0, 1)
            for column in (0, 1)
        )
    )
    out = tmp_path / "c.json"
    words = ["calibrate", str(file), "--human", str(human)]
    found = CliRunner().invoke(command, [*words, "-o", str(out)])
    assert found.exit_code == 0, found.output
    assert "Calibration of rules" in found.output
    assert "prediction-powered" in found.output
    (relation,) = Calibration.read(out).relations
    assert (relation.relation, relation.labels, relation.questions) == ("answer-context", 120, 30)
    # A store may contain human verdicts.
    with VerdictStore(tmp_path / "people.db") as store:
        store.add(read_verdicts(human, ANSWERS))
    again = CliRunner().invoke(command, [*words[:3], str(tmp_path / "people.db")])
    assert "| 120" in again.output.replace("  ", " ") or " 120 " in again.output


@pytest.mark.parametrize("when", ["before", "after"])
def test_verdicts_are_stored_once_if_a_write_is_interrupted(tmp_path, when):
    given = [Verdict(f"k{n}", "supported", "ann", quote=f"{n} m") for n in range(5)]
    with VerdictStore(tmp_path / "v.db") as store:
        store.add(given[:2])
        tries = []

        def add(some):
            tries.append(len(some))
            if len(tries) == 1:
                if when == "after":
                    store.add(some)
                raise KeyboardInterrupt
            store.add(some)

        with pytest.raises(KeyboardInterrupt):
            store_in_batches((one for one in given[2:]), add, every=0.0)
        assert [each.key for each in store.verdicts()] == ["k0", "k1", "k2"]
        store.add([replace(given[2], quote="another")])
        store.add([replace(given[2], label="not stated")])
        store.add([given[2]])
        assert [(each.label, each.quote) for each in store.verdicts()[3:]] == [
            ("supported", "another"),
            ("not stated", "2 m"),
            ("supported", "2 m"),
        ]
