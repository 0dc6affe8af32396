"""Time of judging and scoring answers, as a Markdown table.

    python benchmarks/answers.py [--tiny] [--rounds 3] [--write PAGE]

Calls go to a local server in a separate process, which replies after 50 ms. Wall-clock time, best
of several rounds; the ideal is the time of the server alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from page import number, put, table

from rankgauge.answers import (
    DEFAULT_MEASURES,
    LABELS,
    AnswerRecord,
    AnswerSet,
    Claim,
    ClaimSet,
    Context,
    ModelJudge,
    Verdict,
    VerdictStore,
    evaluate_answers,
    judge_answers,
)
from rankgauge.answers.scores import RELATIONS
from rankgauge.llm import ChatModel

HEAD = ("task", "number", "seconds", "ideal", "goal")
DELAY, CONCURRENCY = 0.05, 64
CONTEXTS, CLAIMS = 5, 5
MEASURE = ["Faithfulness"]


async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reply to all requests of a connection, each after the delay."""
    entry = {"id": "1", "quote": "", "reason": "None.", "label": "not stated"}
    content = json.dumps({"verdicts": [entry]})
    message = {"role": "assistant", "content": content}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    usage = {"prompt_tokens": 300, "completion_tokens": 40}
    body = json.dumps({"model": "m", "choices": choices, "usage": usage}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        while True:
            lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
            size = next(line for line in lines if line.startswith(b"content-length:"))
            await reader.readexactly(int(size.split(b":")[1]))
            await asyncio.sleep(DELAY)
            writer.write(head.encode() + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve() -> None:
    """Print the port, and serve until the process ends."""
    server = await asyncio.start_server(reply, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def answers(questions: int, contexts: int, claims: int) -> AnswerSet:
    """Return answers and references whose claims and contexts all differ."""
    records = tuple(
        AnswerRecord(
            f"q{n}",
            f"Question {n}?",
            f"Answer {n}.",
            tuple(Context(f"c{m}", f"Passage {n} {m}. " * 40) for m in range(contexts)),
            f"Reference {n}.",
        )
        for n in range(questions)
    )
    made = {
        record.id: ClaimSet(
            *(
                tuple(Claim(f"{source} claim {m} of {record.id}.") for m in range(claims))
                for source in ("Answer", "Reference")
            )
        )
        for record in records
    }
    return AnswerSet("drawn", records, claims=lambda record: made[record.id])


def best(call: Callable[[], object], rounds: int) -> float:
    """Return the shortest time of several calls."""
    took = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return min(took)


def judging(calls: int, rounds: int, url: str, folder: Path) -> tuple[str, ...]:
    """Return the row for the calls of a judge."""
    given = answers(calls, 1, 1)
    files = iter(range(rounds))

    def judge() -> None:
        model = ChatModel(url, "m", concurrency=CONCURRENCY)
        with VerdictStore(folder / f"judging-{next(files)}.db") as store:
            store.create()
            done = judge_answers(given, ModelJudge(model), store, measures=MEASURE)
        model.close()
        if done.judged != calls:
            raise AssertionError(str(done))

    ideal = math.ceil(calls / CONCURRENCY) * DELAY
    shown = f"judge calls of {DELAY * 1000:.0f} ms, {CONCURRENCY} in parallel"
    return shown, f"{calls:,}", number(best(judge, rounds)), number(ideal), number(1.3 * ideal)


def measuring(verdicts: int, rounds: int, folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield rows for scoring stored verdicts."""
    for name, measures in (("one measure", MEASURE), ("nine measures", list(DEFAULT_MEASURES))):
        relations = {each for measure in measures for each in RELATIONS[measure]}
        each = sum(item.relation in relations for item in answers(1, CONTEXTS, CLAIMS).items())
        given = answers(max(1, verdicts // each), CONTEXTS, CLAIMS)
        items = [item for item in given.items() if item.relation in relations]
        with VerdictStore(folder / f"{len(measures)}.db") as store:
            store.add(Verdict(item.key, LABELS[item.relation][0], "m") for item in items)
            labels = store.labels()
            read = best(store.labels, rounds)
        scored = best(partial(evaluate_answers, given, labels, measures), rounds)
        yield f"stored verdicts scored, {name}", f"{len(items):,}", number(scored), "", "1"
    yield "verdicts read from the store", f"{len(items):,}", number(read), "", ""


def rows(calls: int, verdicts: int, rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield all rows."""
    command = [sys.executable, __file__, "--serve"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
    ):
        try:
            assert server.stdout is not None  # noqa: S101 - a pipe, for mypy
            port = int(server.stdout.readline())
            yield judging(calls, rounds, f"http://127.0.0.1:{port}", Path(folder))
        finally:
            server.kill()
        yield from measuring(verdicts, rounds, Path(folder))


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve())
        return
    text = table(HEAD, rows(*((20, 50) if given.tiny else (1000, 100_000)), given.rounds))
    print(text)
    if given.write:
        put(given.write, "answers", text)


if __name__ == "__main__":
    main()
