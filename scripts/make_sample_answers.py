"""Rewrite the sample answers: questions, answers of two prompts, and the verdicts of a reader.

Run it manually, from any folder, after changing the texts here or the sample corpus:

    pip install bm25s PyStemmer
    python scripts/make_sample_answers.py

Contexts are the first three documents of ``runs/bm25.run``; that file has no ranking for ``q31``,
which is ranked here in the same way. Everything else was written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from make_sample_runs import SAMPLE, rank_bm25, read_jsonl

from rankgauge.answers import AnswerSet, items_of, sentence_claims

TARGET = SAMPLE / "answers"
GIVEN = 3
SUPPORT = {"+": "supported", "-": "contradicted", "0": "not stated"}


class Answer(NamedTuple):
    """An answer, and the reader's verdicts on it.

    `contexts` has a word for each claim, with a sign for each context. `reference` has a sign for
    each claim, `covers` one for each claim of the reference. `irrelevant` has the numbers of claims
    that do not address the question.
    """

    text: str
    contexts: str = ""
    reference: str = ""
    covers: str = ""
    irrelevant: str = ""


class Question(NamedTuple):
    """A question, its reference answer, and the answers of both prompts.

    `found` has a word for each claim of the reference, with a sign for each context. `relevant` has
    a sign for each context.
    """

    id: str
    group: str
    gold: str
    reference: str
    found: str
    relevant: str
    first: Answer
    second: Answer


QUESTIONS = (
    Question(
        "q02",
        "loans",
        "loans-periods",
        "DVDs are lent for one week.",
        "+00",
        "+00",
        Answer("DVDs are lent for one week.", "+00", "+", "+"),
        Answer("DVDs are lent for one week [1].", "+00", "+", "+"),
    ),
    Question(
        "q05",
        "loans",
        "loans-overdue-fines",
        "Adults pay 20 cents for each item and each day the library is open after the due date. "
        "The late fee stops growing at 6 euros for one item. "
        "There are no late fees on items borrowed with a child card.",
        "+00 +00 +00",
        "++0",
        Answer(
            "Adults pay 20 cents for each item and each day the library is open after the due date.", "+00", "+", "+00"
        ),
        Answer(
            "Adults pay 20 cents for each item and each day the library is open after the due date "
            "[1]. The late fee stops growing at 6 euros for one item [1]. There are no late fees "
            "on items borrowed with a child card [1].",
            "+00 +00 +00",
            "+++",
            "+++",
        ),
    ),
    Question(
        "q08",
        "card",
        "card-lost",
        "Block the card in your account under My card, call us during opening hours, or tell any "
        "service desk. If the police gave you a report number for the theft, the replacement card "
        "is free.",
        "+00 +00",
        "+00",
        Answer(
            "Block the card in your account under My card, call us during opening hours, or tell "
            "any service desk. A replacement costs 5 euros for adults.",
            "+00 -00",
            "+0",
            "+0",
        ),
        Answer(
            "Block the stolen card in your account under My card, call us during opening hours, or "
            "tell any service desk [1]. If the police gave you a report number for the theft, the "
            "replacement card is free [1].",
            "+00 +00",
            "++",
            "++",
        ),
    ),
    Question(
        "q09",
        "internet",
        "wifi",
        "Choose the network Library and enter your card number as the user name and your PIN as "
        "the password. Guests without a card can get a day code from the service desk.",
        "+00 +00",
        "++0",
        Answer(
            "Free Wi-Fi is available on every floor of all three buildings and in the garden.",
            "+00",
            "0",
            "00",
            irrelevant="1",
        ),
        Answer(
            "Choose the network Library and enter your card number as the user name and your PIN "
            "as the password [1]. Guests without a card can get a day code from the service desk "
            "[1].",
            "+00 +00",
            "++",
            "++",
        ),
    ),
    Question(
        "q10",
        "printing",
        "printing-own-device",
        "Open the print page on our website, sign in and upload the file, or attach it to an "
        "e-mail to the print address. Release the job at a station within 24 hours.",
        "00+ 00+",
        "+0+",
        Answer("I'm sorry, but the context does not say whether you can print from a phone."),
        Answer(
            "Yes: open the print page on our website, sign in and upload the file, or attach it to "
            "an e-mail to the print address [3]. Release the job at a station within 24 hours [3].",
            "00+ 00+",
            "++",
            "++",
        ),
    ),
    Question(
        "q11",
        "visiting",
        "opening-hours-holidays",
        "All buildings are closed on public holidays.",
        "000",
        "+00",
        Answer("Yes, at Easter the main library is open on Saturday from 10:00 to 17:00.", "000", "-", "-"),
        Answer("I don't know: the pages that I was given do not mention Easter."),
    ),
    Question(
        "q13",
        "visiting",
        "rooms-study",
        "Book a study room online under Rooms, up to 14 days ahead, for at most two hours a day.",
        "+00",
        "+00",
        Answer(
            "Book a study room online under Rooms, up to 14 days ahead, for at most two hours a day.", "+00", "+", "+"
        ),
        Answer(
            "Book a study room online under Rooms, up to 14 days ahead, for at most two hours a day [1].",
            "+00",
            "+",
            "+",
        ),
    ),
    Question(
        "q14",
        "loans",
        "ill-requesting",
        "We can try to borrow the book from another library in the country. Fill in the "
        "interlibrary loan form with author, title and year.",
        "0+0 0+0",
        "++0",
        Answer(
            "Suggest the book with the form under Catalogue. We buy about half of what readers suggest.",
            "+00 +00",
            "00",
            "00",
        ),
        Answer(
            "We can try to borrow the book from another library in the country [2]. Fill in the "
            "interlibrary loan form with author, title and year [2].",
            "0+0 0+0",
            "++",
            "++",
        ),
    ),
    Question(
        "q15",
        "loans",
        "ill-conditions",
        "An interlibrary loan costs 5 euros for each item. A copy of an article costs 3 euros. "
        "Students and benefit holders pay half.",
        "+00 +00 +00",
        "+00",
        Answer("An interlibrary loan costs 5 euros for each item. Students pay nothing.", "+00 -00", "+-", "+0-"),
        Answer(
            "An interlibrary loan costs 5 euros for each item [1]. A copy of an article costs 3 "
            "euros [1]. Students and benefit holders pay half [1].",
            "+00 +00 +00",
            "+++",
            "+++",
        ),
    ),
    Question(
        "q17",
        "visiting",
        "visiting-house-rules",
        "Drinks in cups or bottles with a lid are allowed everywhere except in the archive, the "
        "maker space and next to the public computers.",
        "+00",
        "+00",
        Answer(
            "Drinks in cups or bottles with a lid are allowed everywhere except in the archive, "
            "the maker space and next to the public computers.",
            "+00",
            "+",
            "+",
        ),
        Answer(
            "Drinks in cups or bottles with a lid are allowed everywhere except in the archive, "
            "the maker space and next to the public computers [2].",
            "+00",
            "+",
            "+",
        ),
    ),
    Question(
        "q18",
        "archive",
        "archive-copies",
        "A print of a photo on photo paper costs 12 euros. A high-resolution scan costs 6 euros. Allow two weeks.",
        "0+0 0+0 0+0",
        "0+0",
        Answer(
            "A print of a photo on photo paper costs 12 euros. A high-resolution scan costs 6 "
            "euros. Allow two weeks. The archive frames pictures for 20 euros.",
            "0+0 0+0 0+0 000",
            "+++0",
            "+++",
        ),
        Answer(
            "A print of a photo on photo paper costs 12 euros [2]. A high-resolution scan costs 6 "
            "euros [2]. Allow two weeks [2].",
            "0+0 0+0 0+0",
            "+++",
            "+++",
        ),
    ),
    Question(
        "q20",
        "children",
        "children-storytime",
        "Rhyme time for babies and toddlers up to two years is every Tuesday and Friday at 10:30. "
        "Story time for ages three to six is on Wednesday at 15:30 and on Saturday at 11:00.",
        "+00 +00",
        "+00",
        Answer("Story time is on Wednesday at 16:30.", "-00", "-", "0-"),
        Answer(
            "Rhyme time for babies and toddlers up to two years is every Tuesday and Friday at "
            "10:30 [1]. Story time for ages three to six is on Wednesday at 15:30 and on Saturday "
            "at 11:00 [1].",
            "+00 +00",
            "++",
            "++",
        ),
    ),
    Question(
        "q21",
        "card",
        "card-pin",
        "After five wrong attempts the account is locked for 30 minutes and then opens by itself. "
        "If you have forgotten your PIN, choose Forgotten PIN on the sign-in page.",
        "+00 +00",
        "++0",
        Answer(
            "After five wrong attempts the account is locked for 30 minutes and then opens by itself.", "+00", "+", "+0"
        ),
        Answer(
            "After five wrong attempts the account is locked for 30 minutes and then opens by "
            "itself [1]. If you have forgotten your PIN, choose Forgotten PIN on the sign-in page "
            "[1].",
            "+00 +00",
            "++",
            "++",
        ),
    ),
    Question(
        "q23",
        "maker",
        "maker-3d-printing maker-induction",
        "Before you use a 3D printer for the first time you must take its induction of 45 minutes. "
        "Inductions are free. Material costs 5 cents a gram, with a minimum of 50 cents.",
        "0+0 0+0 +00",
        "++0",
        Answer("Material costs 5 cents a gram, with a minimum of 50 cents.", "+00", "+", "00+"),
        Answer(
            "Before you use a 3D printer for the first time you must take its induction of 45 "
            "minutes [2]. Inductions are free [2]. Material costs 5 cents a gram, with a minimum "
            "of 50 cents [1].",
            "0+0 0+0 +00",
            "+++",
            "+++",
        ),
    ),
    Question(
        "q24",
        "archive",
        "donations-books",
        "We cannot take multi-volume reference works.",
        "000",
        "000",
        Answer("Yes, we gladly take encyclopedias off your hands.", "000", "-", "-"),
        Answer("I don't know: the pages that I was given do not mention donations."),
    ),
    Question(
        "q25",
        "loans",
        "loans-claims-returned",
        "Report it at the service desk or by the contact form. We mark the loan as claimed "
        "returned, stop any late fee and search the shelves at all three buildings for four weeks.",
        "+00 +00",
        "+00",
        Answer(
            "Report it at the service desk or by the contact form. We mark the loan as claimed "
            "returned, stop any late fee and search the shelves at all three buildings for four "
            "weeks.",
            "+00 +00",
            "++",
            "++",
        ),
        Answer(
            "Report it at the service desk or by the contact form [1]. We mark the loan as claimed "
            "returned, stop any late fee and search the shelves at all three buildings for four "
            "weeks [1].",
            "+00 +00",
            "++",
            "++",
        ),
    ),
    Question(
        "q26",
        "visiting",
        "access-building",
        "The main entrance is level with the pavement. A lift goes to every floor. Wheelchairs can "
        "be borrowed at the entrance.",
        "+00 +00 +00",
        "+00",
        Answer("A lift goes to every floor. Wheelchairs can be borrowed at the entrance.", "+00 +00", "++", "0++"),
        Answer(
            "The main entrance is level with the pavement [1]. A lift goes to every floor [4]. "
            "Wheelchairs can be borrowed at the entrance [1].",
            "+00 +00 +00",
            "+++",
            "+++",
        ),
    ),
    Question(
        "q30",
        "card",
        "card-visitors",
        "Guests can have a visitor card for 10 euros. With it you may borrow five items at a time.",
        "000 000",
        "000",
        Answer("No, only members may take novels home.", "000", "-", "00"),
        Answer("I don't know: the pages that I was given do not mention visitors."),
    ),
    Question(
        "q22",
        "visiting",
        "",
        "",
        "",
        "000",
        Answer("Yes, a chess evening for adults is held once a month from 18:30.", "000"),
        Answer("The sources do not mention a chess evening for adults."),
    ),
    Question(
        "q31",
        "archive",
        "",
        "",
        "",
        "000",
        Answer("A city architect designed the main library building in 1974.", "000"),
        Answer("I don't know who designed the building."),
    ),
)
MORE = {"q31": "who designed the main library building"}


def records(documents: dict[str, str], rankings: dict[str, list[str]]) -> Iterator[dict[str, Any]]:
    """Yield each question with its reference data and the answers of both prompts."""
    asked = read_jsonl("queries.jsonl") | MORE
    for each in QUESTIONS:
        known: dict[str, Any] = {"id": each.id, "question": asked[each.id], "group": each.group}
        known |= {"answerable": bool(each.reference), "gold": each.gold.split()}
        given = [{"id": doc, "text": documents[doc]} for doc in rankings[each.id][:GIVEN]]
        yield {
            "questions": known | ({"reference": each.reference} if each.reference else {}),
            **{
                name: {
                    "id": each.id,
                    "question": asked[each.id],
                    "answer": answer.text,
                    "contexts": given,
                    "ranking": rankings[each.id],
                }
                for name, answer in (("prompt-1", each.first), ("prompt-2", each.second))
            },
        }


def verdicts(answers: AnswerSet, which: str) -> Iterator[dict[str, Any]]:
    """Yield the reader's verdict on every item of the answers to a prompt."""
    for each, record in zip(QUESTIONS, answers, strict=True):
        answer: Answer = getattr(each, which)
        claims = sentence_claims(record)
        texts = [claim.text for claim in claims.answer or ()]
        rows, found = answer.contexts.split(), each.found.split()
        if len(rows) != len(texts) or len(found) != len(claims.reference or ()):
            raise ValueError(f"{each.id}: {len(texts)} claims, {len(rows)} rows, {found}")
        places = {context.id: place for place, context in enumerate(record.contexts)}
        cited = [
            (texts.index(citation.text), places[citation.context])
            for citation in record.citations
            if citation.context in places
        ]
        covers = answer.covers or "0" * len(found)
        signs = {
            "answer-context": "".join(rows),
            "answer-reference": answer.reference,
            "reference-context": "".join(found),
            "reference-answer": covers,
            "nugget-answer": covers.replace("-", "0"),
            "citation-context": "".join(rows[row][place] for row, place in cited),
        }
        labels = {name: [SUPPORT[sign] for sign in row] for name, row in signs.items()}
        labels |= {
            "answer-question": [
                "not relevant" if str(number) in answer.irrelevant else "relevant"
                for number in range(1, len(texts) + 1)
            ],
            "context-question": ["relevant" if sign == "+" else "not relevant" for sign in each.relevant],
            "abstention": ["answers" if answer.contexts else "abstains"],
        }
        for item in items_of(record, claims):
            yield {
                "key": item.key,
                "label": labels[item.relation].pop(0),
                "judge": "reader",
                "question": each.id,
                "relation": item.relation,
                "subject": item.subject[:80],
            }


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows as JSON lines."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (TARGET / name).write_text(text, encoding="utf-8", newline="\n")


def main() -> None:
    """Write all files."""
    rankings: dict[str, list[str]] = {}
    for line in (SAMPLE / "runs" / "bm25.run").read_text(encoding="utf-8").splitlines():
        query, _, doc, *_ = line.split()
        rankings.setdefault(query, []).append(doc)
    for query, by_doc in rank_bm25(read_jsonl("corpus.jsonl"), MORE).items():
        found = sorted((-score, doc) for doc, score in by_doc.items() if score > 0)
        rankings[query] = [doc for _, doc in found[:20]]
    documents = {
        row["_id"]: row["text"] for row in map(json.loads, (SAMPLE / "corpus.jsonl").read_text("utf-8").splitlines())
    }
    TARGET.mkdir(exist_ok=True)
    made = list(records(documents, rankings))
    for name in ("questions", "prompt-1", "prompt-2"):
        write(f"{name}.jsonl", [each[name] for each in made])
    rows: dict[str, dict[str, Any]] = {}
    for name, which in (("prompt-1", "first"), ("prompt-2", "second")):
        answers = AnswerSet.of(TARGET / f"{name}.jsonl", reference=TARGET / "questions.jsonl")
        for row in verdicts(answers, which):
            if rows.setdefault(row["key"], row)["label"] != row["label"]:
                raise ValueError(f"two labels: {row} and {rows[row['key']]}")
    write("verdicts.jsonl", list(rows.values()))


if __name__ == "__main__":
    main()
