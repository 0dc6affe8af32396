"""Rewrite the sample log from the sample corpus.

Run it manually, from any folder:

    pip install bm25s PyStemmer
    python scripts/make_sample_log.py

It writes ``log/searches.jsonl.gz``, eight weeks of a help center's question answering, and
``log/mapping.toml`` next to the sample corpus. Questions are built from the phrases below, and
results are those of BM25; users, clicks, and ratings are drawn with a fixed seed. From the fifth
week on, users also ask about 3D printing and other machines. The output is deterministic.
"""

from __future__ import annotations

import gzip
import io
import json
from datetime import UTC, datetime, timedelta
from random import Random

from make_sample_runs import SAMPLE, rank_bm25, read_jsonl

START = datetime(2026, 3, 2, tzinfo=UTC)
WEEKS, SEARCHES, USERS, SHOWN = 8, 100, 160, 5
# The rates of the simulated users.
EXAMINED = (1.0, 0.6, 0.4, 0.3, 0.25)
CLICK, STRAY_CLICK, RATING, REPEAT = 0.75, 0.06, 0.35, 0.45
UP_IF_FOUND, UP_IF_NOT = 0.85, 0.2

# Relevant documents, then question patterns; each word in braces is replaced by the others.
TOPICS = """\
loans-renewing loans-renewing-phone
how do i renew {my books;a loan;a dvd;my loans online}
can I {extend;prolong;renew} a {book;game;magazine} by phone
renew {online;by phone;at the desk;twice}

loans-periods loans-limits
how long can I keep {a DVD;a book;a board game;magazines}
how many {books;films;items;games} can I borrow at once
loan period {cd;novel;children's book}

loans-overdue-fines loans-paying-fees
{late fees;overdue fees;fines} {for children;for dvds;per day}
how can I pay {my fees;a fine;what I owe} {online;by card;in cash}
what happens if I bring {a book;two books;a game} back too late

loans-returning faq-returning
where can I {return;drop off;give back} {my books;a book;dvds} {on sunday;at night}
book drop {at the branch;opening times;full}

card-joining card-visitors card-children
how do I {join;become a member;get a card}
library card for {my son;a tourist;students;my parents}
what does {membership;a card;joining} cost

card-pin card-blocked card-lost
{forgot;lost;need to change} my pin
my {card;account} is {blocked;locked;not working}
I lost my {card;library card;wallet with the card}, what now

ebooks-borrowing ebooks-problems ebooks-reserving
how do I borrow {an ebook;e-books;an audiobook} {on my phone;on a kindle;at home}
{ebook;e-book;audiobook} does not {open;download;play}
waiting list for {e-books;an ebook;audiobooks}

printing printing-own-device scanning-copying
can I print {a boarding pass;a pdf;photos;from my phone;in color}
what does {printing;copying;a scan;a color copy} cost
{scan;copy} {documents;a passport;a book}

wifi wifi-problems computers-booking
wifi {password;not working;login;slow}
{book;reserve;use} a computer {today;for two hours;without a card}
how do I connect {my laptop;my phone;a tablet} to the wifi

rooms-study rooms-meeting rooms-reading
{book;reserve;hire} a {study room;meeting room;group room}
study room for {four people;our group;saturday}
is there a quiet place to {study;read;work}

opening-hours opening-hours-holidays
are you open {on sunday;at easter;on may day;at christmas;tonight}
opening hours {branch;main building;saturday;reading room}
when do you {open;close} {today;tomorrow;on friday}

children-storytime children-homework children-summer
story time for {toddlers;babies;my daughter;four year olds}
{homework club;summer reading;rhyme time} {times;sign up;age}
can my {son;nine year old;daughter} {stay alone;get homework help}

loans-home-delivery access-formats
could someone bring {books;crime novels} to my {grandmother;mother}, she is very old
do you have {novels;crime novels;newspapers} in {large print;braille;bigger type}

access-building access-technology
wheelchair {access;ramp;toilet;parking}
is there a {lift;hearing loop} in the hall

visiting-lost-property visiting-house-rules
I forgot my {umbrella;scarf;glasses;bag} {upstairs;in the hall}, did someone find it?
am I allowed to {drink coffee;eat a sandwich;make phone calls} at a desk?

ill-requesting ill-conditions purchase-suggestions
can you get me {a book;an article;a film} that is not in your catalogue
interlibrary loan {cost;how long;renew}

archive-family-history archive-copies archive-newspapers archive-visiting
where can I look up my {great-grandparents;family;ancestors}
can I order an old {photo;map;newspaper} of my {street;school;village} from you?

donations-books
would you take my late {father;mother}'s {books;encyclopedias;records}?
donate {books;dvds;comics}

loans-claims-returned loans-renewing-refused
I brought {a novel;two books;a film} back last week but it is still on my account
the website will not let me {extend;renew} my loan, it just says not allowed
"""
# Asked from the fifth week on. The collection has a page on 3D printing but not on other machines.
KNOWN = (
    ("maker-3d-printing", "maker-induction"),
    (
        "3d printer {price;file format;booking;induction;opening times}",
        "can I {print;make} a {phone case;spare part;figure} on the 3d printer",
        "how long does {a 3d print;the maker space induction} take",
    ),
)
UNKNOWN: tuple[tuple[str, ...], tuple[str, ...]] = (
    (),
    (
        "can I {use;book} the {laser cutter;sewing machine;vinyl cutter}",
        "{laser cutter;sewing machine;vinyl cutter} {price;training;booking;age limit;times}",
        "do I need {training;an appointment;my own material} for the {laser cutter;sewing machine}",
        "how much is {an hour;a day} on the {laser cutter;sewing machine;vinyl cutter}",
        "can the laser cutter cut {acrylic;plywood;leather;felt}",
        "which {thread;fabric;needles} can the sewing machine take",
    ),
)


def wordings(pattern: str) -> list[str]:
    """Return all questions of a pattern."""
    head, brace, rest = pattern.partition("{")
    if not brace:
        return [pattern]
    inner, _, tail = rest.partition("}")
    return [head + word + end for word in inner.split(";") for end in wordings(tail)]


def clicked(draw: Random, shown: list[str], good: tuple[str, ...]) -> str | None:
    """Return the result that a user opens: scan from the top, click if it looks relevant."""
    for chance, document in zip(EXAMINED, shown, strict=False):
        attraction = CLICK if document in good else STRAY_CLICK
        if draw.random() < chance * attraction:
            return document
    return None


def make_searches() -> list[dict[str, object]]:
    """Return the searches of all weeks, ordered by time."""
    draw = Random(20260302)  # noqa: S311 - a simulation
    usual = [paragraph.splitlines() for paragraph in TOPICS.split("\n\n")]
    topics = [
        (good, sorted({t for p in patterns for t in wordings(p)}))
        for good, patterns in [
            *((tuple(documents.split()), tuple(patterns)) for documents, *patterns in usual),
            KNOWN,
            UNKNOWN,
        ]
    ]
    texts = [text for _, several in topics for text in several]
    ranked = rank_bm25(read_jsonl("corpus.jsonl"), dict(zip(texts, texts, strict=True)))
    rows: list[dict[str, object]] = []
    for week in range(WEEKS):
        new = 0.0 if week < 4 else 0.1 * (week - 1)
        for _ in range(SEARCHES):
            fresh = draw.random() < new
            known = len(usual)
            number = known + (draw.random() < 0.75) if fresh else draw.randrange(known)
            good, several = topics[number]
            time = START + timedelta(weeks=week, seconds=draw.randrange(7 * 86_400))
            user, device = f"u{draw.randrange(USERS):03}", draw.choice(["phone", "desktop"])
            # Few questions are frequent, and many are rare.
            text = several[int(len(several) * draw.random() ** 1.5)]
            rows.append(ask(draw, ranked[text], text, good, time, user, device))
            if "no_answer" in rows[-1] and draw.random() < REPEAT:
                again = draw.choice([t for t in several if t.split()[0] == text.split()[0]])
                time += timedelta(seconds=draw.randrange(20, 200))
                rows.append(ask(draw, ranked[again], again, good, time, user, device))
    rows.sort(key=lambda row: str(row["time"]))
    return [{"id": f"s{number:04}", **row} for number, row in enumerate(rows, start=1)]


def ask(  # noqa: PLR0917 - the properties of a search
    draw: Random, scores: dict[str, float], text: str, good: tuple[str, ...], time: datetime, user: str, device: str
) -> dict[str, object]:
    """Return one search as the application would log it."""
    best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = [document for document, score in best[:SHOWN] if score > 0]
    found = bool(set(good) & set(shown))
    row: dict[str, object] = {
        "time": time.isoformat().replace("+00:00", "Z"),
        "user": user,
        "session": f"{user}-{time:%m%d}",
        "device": device,
        "question": text,
        "results": shown,
        "ms": int(draw.lognormvariate(6.3, 0.4)),
    }
    if (opened := clicked(draw, shown, good)) is not None:
        row["opened"] = opened
    if found or draw.random() < 0.4:
        row["answer"] = f"See {', '.join(shown[:2])}."
    else:
        row["no_answer"] = "nothing found"
    if draw.random() < RATING:
        row["rating"] = "up" if draw.random() < (UP_IF_FOUND if found else UP_IF_NOT) else "down"
    return row


MAPPING = """\
# The fields of searches.jsonl.gz that contain the parts of each event.
attributes = ["device"]

[columns]
time = "time"
question_id = "id"
user_id = "user"
session_id = "session"

[[events]]
kind = "question"
text = "question"

[[events]]
kind = "retrieval"
documents = "results"
latency_ms = "ms"

[[events]]
kind = "impression"
documents = "results"

[[events]]
kind = "click"
documents = "opened"

[[events]]
kind = "answer"
text = "answer"

[[events]]
kind = "abstention"
label = "no_answer"

[[events]]
kind = "thumbs"
value = "rating"
"""


def main() -> None:
    """Write the log, with three faults that occur in real logs, and its mapping."""
    lines = [json.dumps(row, ensure_ascii=False) for row in make_searches()]
    lines.insert(200, lines[198])  # duplicate line
    lines[300] = lines[300].replace('Z"', '"', 1)  # no time zone
    lines[-1] = lines[-1][:60]  # truncated line
    folder = SAMPLE / "log"
    folder.mkdir(exist_ok=True)
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream:
        stream.write("".join(f"{line}\n" for line in lines).encode())
    (folder / "searches.jsonl.gz").write_bytes(packed.getvalue())
    (folder / "mapping.toml").write_text(MAPPING, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
