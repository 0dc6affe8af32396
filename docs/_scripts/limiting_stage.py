"""How often `blame` names the seeded cause that limits an answer: a simulation, in Markdown.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/limiting_stage.py [--write]

Answers without a fault consist of the reference answer, with contexts that state it: the bundled
sample, and conversations of MTRAG (``rag/mtrag/answers.jsonl.gz``). One cause is seeded in each,
and the true verdicts are known by construction. Other verdicts are those of rules, and true ones with
errors drawn from a fixed seed.
"""

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from page_tables import write_tables

import rankgauge
from rankgauge.answers import AnswerRecord, Claim, ClaimSet, Context, JudgedAnswer, items_of
from rankgauge.answers.diagnosis import CAUSES, Blame, blame
from rankgauge.answers.judges import RuleJudge
from rankgauge.answers.verdicts import Item
from rankgauge.core.abstention import split_sentences
from rankgauge.rendering.tables import Table

PAGE = Path(__file__).parents[1] / "explain" / "diagnosis-accuracy.md"
GOOD = "no fault"
ABSTENTION = "I don't know."
SENSITIVITY, SPECIFICITY = 0.95, 0.9
SHOWN = 3  # contexts given to the model
MTRAG = 60


@dataclass(frozen=True)
class Seeded:
    """Record with a seeded cause, and everything from which the true verdicts follow.

    Attributes:
        expected: The seeded cause.
        fault: The fault.
        record: The record with the fault.
        reference: The claims of the reference.
        answer: The claims of the answer.
        stated: The claims that each context states, by identifier.
        altered: The claims of the reference that claims of the answer contradict, by text.
        astray: The claims of the answer that do not address the question.
    """

    expected: str
    fault: str
    record: AnswerRecord
    reference: tuple[str, ...]
    answer: tuple[str, ...]
    stated: dict[str, tuple[str, ...]]
    altered: dict[str, str]
    astray: frozenset[str] = frozenset()

    @cached_property
    def claims(self) -> ClaimSet:
        """The claims of both."""
        made = (tuple(map(Claim, some)) for some in (self.answer, self.reference))
        return ClaimSet(*made, ())

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The items to judge."""
        return tuple(items_of(self.record, self.claims))

    def truth(self, item: Item) -> str:
        """Return the true label of an item."""
        meant = self.altered.get(item.subject)
        if item.relation in {"answer-context", "reference-context"}:
            said = self.stated.get(self.record.contexts[item.column].id, ())
            return _label(item.subject in said, meant in said)
        if item.relation == "answer-reference":
            return _label(item.subject in self.reference, meant in self.reference)
        if item.relation == "reference-answer":
            against = item.subject in {self.altered.get(claim) for claim in self.answer}
            return _label(item.subject in self.answer, against)
        if item.relation == "answer-question":
            return "not relevant" if item.subject in self.astray else "relevant"
        if item.relation == "abstention":
            return "answers" if self.answer else "abstains"
        return "relevant"

    def judged(self, labels: dict[str, str] | None = None) -> JudgedAnswer:
        """Return the answer with these labels by key, or with the true ones."""
        if labels is None:
            labels = {item.key: self.truth(item) for item in self.items}
        return JudgedAnswer.of(self.record, self.claims, labels)


def _label(supported: object, contradicted: object) -> str:
    return "supported" if supported else "contradicted" if contradicted else "not stated"


def opposite(claim: str) -> str:
    """Return a claim that contradicts this one: another number, or a negation."""
    changed = re.sub(r"\d+", lambda found: str(int(found[0]) * 2 + 1), claim, count=1)
    if changed == claim:
        verb = r"\b(is|are|was|were|can|may|will|must|has|have)\b"
        changed = re.sub(verb, r"\1 not", claim, count=1)
    return f"It is not true that {claim}" if changed == claim else changed


def bases(data: Path) -> Iterator[tuple[str, Seeded, Seeded]]:
    """Yield source, an answer without a fault, and an answer to another question."""
    for source, records in (("sample", sample()), ("MTRAG", mtrag(data))):
        some = list(records)
        # Half of the collection away, so that the other question has another subject.
        for at, base in enumerate(some):
            yield source, base, some[(at + len(some) // 2) % len(some)]


def sample() -> Iterator[Seeded]:
    """Yield the answerable questions of the sample, answered by their reference."""
    folder = rankgauge.sample_path("answers/questions.jsonl").parent
    texts = rankgauge.Collection.load(folder.parent).documents
    runs = {row["id"]: row for row in _rows(folder / "prompt-2.jsonl")}
    for row in _rows(folder / "questions.jsonl"):
        gold = tuple(row.get("gold", ()))
        if not gold:
            continue
        others = [doc for doc in runs[row["id"]]["ranking"] if doc not in gold]
        ranking = (*gold, *others)
        record = AnswerRecord(
            row["id"],
            row["question"],
            row["reference"],
            (),
            row["reference"],
            answerable=True,
            gold=gold,
            ranking=ranking,
        )
        known = {doc: texts[doc].text for doc in ranking if doc in texts}
        yield _base(record, [Context(doc, text) for doc, text in known.items()], len(gold))


def mtrag(data: Path) -> Iterator[Seeded]:
    """Yield answerable turns with contexts, answered by their human reference; no rankings."""
    with gzip.open(data / "rag" / "mtrag" / "answers.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    kept = [
        row for row in rows if row["model"] == "reference" and row["answerability"] == "answerable" and row["contexts"]
    ][:MTRAG]
    passages = [Context(row["id"], "\n\n".join(c["text"] for c in row["contexts"])) for row in kept]
    for at, row in enumerate(kept):
        record = AnswerRecord(row["id"], row["question"], row["answer"], (), row["answer"], answerable=True)
        far = [(at + step) % len(kept) for step in (len(kept) // 3, len(kept) // 2)]
        yield _base(record, [passages[at], *(passages[place] for place in far)], 1)


def _rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _base(record: AnswerRecord, contexts: Sequence[Context], useful: int) -> Seeded:
    claims = tuple(dict.fromkeys(split_sentences(record.reference)))
    shown = tuple(contexts[: max(SHOWN, useful)])
    stated = {each.id: claims for each in contexts[:useful]}
    return Seeded(GOOD, "none", replace(record, contexts=shown), claims, claims, stated, {})


def answering(of: Seeded, claims: Iterable[str], **changes: object) -> Seeded:
    """Return the record with an answer of these claims; without any, it abstains."""
    claims = tuple(claims)
    text = " ".join(claims) or ABSTENTION
    return replace(of, answer=claims, record=replace(of.record, answer=text), **changes)


def without_contexts(of: Seeded, expected: str, fault: str, ranking: Sequence[str]) -> Seeded:
    """Return the record with the ranking and contexts that do not state the answer."""
    left = tuple(each for each in of.record.contexts if each.id not in of.stated)
    record = replace(of.record, contexts=left, ranking=tuple(ranking))
    return replace(of, expected=expected, fault=fault, record=record)


def faults(base: Seeded, other: Seeded) -> Iterator[Seeded]:
    """Yield the answer without a fault, and with each fault."""
    yield base
    claims, record = base.reference, base.record
    wrong = opposite(claims[0])
    altered = {"altered": {wrong: claims[0]}}
    # A claim on the subject of the question that no text states.
    asked = record.question.rstrip("?.! ")
    invented = f"In {1901 + len(claims)}, {len(asked)} people asked: {asked}."
    away = other.reference[0]
    if record.gold:
        others = [doc for doc in record.ranking if doc not in record.gold]
        lowered = [*others[:SHOWN], *record.gold, *others[SHOWN:]]
        for expected, fault, ranking in (
            ("not retrieved", "not in the ranking", others),
            ("retrieved but cut", "rank below the contexts", lowered),
        ):
            lost = without_contexts(base, expected, fault, ranking)
            yield answering(lost, ())
            yield answering(lost, [wrong, *claims[1:]], **altered)
        gone = without_contexts(base, "not in the collection", "document removed", others)
        gone = replace(gone, record=replace(gone.record, gold=(), answerable=False))
        yield answering(gone, ())
        yield answering(replace(gone, expected="answered though unanswerable"), [invented])
        found = without_contexts(base, GOOD, "another document states it", lowered)
        also = Context("copy", " ".join(claims))
        record_of_copy = replace(found.record, contexts=(also, *found.record.contexts))
        yield replace(found, record=record_of_copy, stated={"copy": claims})
    else:
        lost = without_contexts(base, "not retrieved", "not among the contexts", ())
        yield answering(lost, ())
        yield answering(lost, [wrong, *claims[1:]], **altered)
    yield from _cut(base, claims)
    answers = (
        ("abstained though answerable", "abstention forced", (), {}),
        ("used but contradicted", "claim altered", [wrong, *claims[1:]], altered),
        ("does not address the question", "other question answered", [away], {"astray": frozenset([away])}),
        ("in the context but not used", "claims replaced", [invented], {}),
        ("partly used", "claim dropped", claims[:-1], {}),
        ("unsupported claims", "claim added", [*claims, invented], {}),
    )
    for expected, fault, said, changes in answers:
        if said or not expected.startswith("partly"):
            yield answering(base, said, expected=expected, fault=fault, **changes)


def _cut(base: Seeded, claims: tuple[str, ...]) -> Iterator[Seeded]:
    """Yield the record with contexts cut before all claims, or before the last ones."""
    cause = "retrieved but cut" if base.record.gold else "not retrieved"
    for kept in {0, len(claims) // 2}:
        passages = tuple(
            replace(each, text=" ".join(claims[:kept]) or "More on the next page.") if each.id in base.stated else each
            for each in base.record.contexts
        )
        short = replace(
            base,
            expected=cause,
            fault="text cut" if not kept else "text cut in half",
            record=replace(base.record, contexts=passages),
            stated=dict.fromkeys(base.stated, claims[:kept]),
        )
        yield answering(short, claims[:kept])


def by_rules(seeded: Sequence[Seeded]) -> Blame:
    """Return the causes by the verdicts of rules."""
    judge = RuleJudge()
    judged = []
    for each in seeded:
        labels = {found.key: found.label for found in judge.judge(each.items) if hasattr(found, "label")}
        judged.append(each.judged(labels))
    return blame(judged)


def with_errors(seeded: Sequence[Seeded], seed: int = 1) -> Blame:
    """Return the causes by true verdicts with errors of the stated rates."""
    rng = np.random.default_rng(seed)
    judged = []
    for each in seeded:
        labels = {}
        for item in each.items:
            label = each.truth(item)
            positive = label in {"supported", "relevant", "abstains"}
            wrong = rng.random() > (SENSITIVITY if positive else SPECIFICITY)
            flipped = {
                "supported": "not stated",
                "contradicted": "supported",
                "not stated": "supported",
                "relevant": "not relevant",
                "not relevant": "relevant",
                "abstains": "answers",
                "answers": "abstains",
            }
            labels[item.key] = flipped[label] if wrong else label
        # Abstentions are found by a rule, whatever judges the claims.
        labels |= {i.key: each.truth(i) for i in each.items if i.relation == "abstention"}
        judged.append(each.judged(labels))
    return blame(judged)


def tables(data: Path) -> Iterator[tuple[str, Table]]:
    """Yield the tables of the page."""
    seeded = [(source, each) for source, base, other in bases(data) for each in faults(base, other)]
    cases = [each for _, each in seeded]
    found = {
        "true verdicts": blame([each.judged() for each in cases]),
        f"judge of {SENSITIVITY}/{SPECIFICITY}": with_errors(cases),
        "rules": by_rules(cases),
    }
    kinds = dict.fromkeys((each.expected, each.fault) for each in cases)
    order = {name: at for at, name in enumerate((GOOD, *CAUSES))}
    rows = []
    for expected, fault in sorted(kinds, key=lambda pair: order[pair[0]]):
        at = [n for n, each in enumerate(cases) if (each.expected, each.fault) == (expected, fault)]
        shares = []
        for each in found.values():
            causes = Counter(each.answers[n].cause for n in at)
            first = sum(count for cause, count in causes.items() if cause == expected)
            shares.append(_percent(first / len(at)))
            rest = [f"{cause} {count}" for cause, count in causes.most_common() if cause != expected]
        rows.append((expected, fault, str(len(at)), *shares, ", ".join(rest[:2])))
    yield (
        "stages",
        Table(columns=("seeded cause", "fault", "answers", *found, "other causes by rules"), rows=tuple(rows)),
    )
    yield (
        "stage-rates",
        Table(
            columns=(
                "verdicts",
                "answers of",
                "cause right",
                "stage right",
                "stated causes right",
                "false cause without a fault",
                "correctness lost: true",
                "gain at most",
            ),
            rows=tuple(
                (
                    name,
                    source,
                    *rates(
                        [each for own, each in seeded if own == source],
                        Blame(
                            tuple(
                                answer for (own, _), answer in zip(seeded, each.answers, strict=True) if own == source
                            )
                        ),
                    ),
                )
                for name, each in found.items()
                for source in ("sample", "MTRAG")
            ),
        ),
    )


def rates(seeded: Sequence[Seeded], found: Blame) -> tuple[str, ...]:
    """Return shares of right causes, stages, and stated causes, and of false causes; gains."""
    pairs = list(zip(seeded, found.answers, strict=True))
    right = [each.expected == answer.cause for each, answer in pairs]
    stage = [_stage(each.expected) == answer.stage for each, answer in pairs]
    stated = [same for same, (_, answer) in zip(right, pairs, strict=True) if answer.stage]
    clean = [bool(answer.stage) for each, answer in pairs if each.expected == GOOD]
    truly = blame([each.judged() for each in seeded])
    lost = [
        1 - answer.correctness
        for each, answer in zip(seeded, truly.answers, strict=True)
        if each.expected != GOOD and not math.isnan(answer.correctness)
    ]
    gains = math.fsum(gain for gain in map(found.gain, CAUSES) if not math.isnan(gain))
    return (
        *map(_percent, (np.mean(right), np.mean(stage), np.mean(stated), np.mean(clean))),
        f"{math.fsum(lost) / len(seeded):.3f}",
        f"{gains:.3f}",
    )


def _stage(cause: str) -> str:
    return CAUSES[cause][0] if cause in CAUSES else ""


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


if __name__ == "__main__":
    write_tables(tables, PAGE)
