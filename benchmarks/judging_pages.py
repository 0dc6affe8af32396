"""Response times of the judging pages over the loopback interface, as a Markdown table.

    python benchmarks/judging_pages.py [--tiny] [--project FILE] [--write PAGE]

A project with 100,000 stored choices, served by a separate process as `rankgauge serve`
does. First one judge answers without pause, then 50 judges with 4 to 12 seconds for each task. A
response time spans sending the form, storing the choice, and receiving the whole next page.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from page import number, put, table

from rankgauge.judging import (
    Candidate,
    Choice,
    Document,
    JudgingProject,
    Presentation,
    Question,
    Settings,
    Source,
    hash_secret,
)

HEAD = ("judges", "stored choices", "choices", "errors", "median ms", "99th percentile ms", "goal")
DOCUMENTS = 20
WORDS = ("library", "opens", "at", "nine", "lends", "books", "for", "three", "weeks", "members")
SERVER = """
import sys
from rankgauge.judging import JudgingProject
from rankgauge.web import serve
with JudgingProject(sys.argv[1]) as project:
    serve(project, port=int(sys.argv[2]))
"""


def filled(where: Path, choices: int, judges: int) -> list[str]:
    """Create a project with this many choices unless it exists; return the judges' cookies."""
    project = JudgingProject(where)
    if not where.exists():
        questions = max(5, choices // 20)
        project = JudgingProject.create(where, Settings())
        rng = random.Random(18)  # noqa: S311 - drawn texts, not a secret
        names = [f"q{each}" for each in range(questions)]
        pool = [f"d{each}" for each in range(DOCUMENTS)]
        project.add_questions(Question(each, f"What does {each} ask about loans?") for each in names)
        project.add_candidates(
            [Candidate(each, name, (Source("run", rank=1),)) for each in names for name in pool],
            [Document(each, {"text": " ".join(rng.choices(WORDS, k=200))}) for each in pool],
        )
        people = [project.add_judge(f"Judge {each}")[0].id for each in range(judges)]
        before = datetime.now(UTC) - timedelta(days=1)
        with project.writing() as stored:
            for each in range(choices):
                shown = Presentation(
                    str(uuid.uuid4()),
                    rng.choice(names),
                    tuple(rng.sample(pool, 3)),
                    people[each % judges],
                    expires=before.isoformat(timespec="seconds"),
                )
                stored.append_presentation(shown)
                # A quarter of the documents is relevant.
                best = tuple(name for name in shown.documents if int(name[1:]) % 4 == 0)[:1]
                outcome = "chosen" if best else "none"
                stored.append_choice(Choice(str(uuid.uuid4()), shown.id, shown.judge, outcome, best, seconds=8.0))
    ends = datetime.now(UTC) + timedelta(days=1)
    cookies = []
    with project.writing() as stored:
        for judge in list(stored.judges())[:judges]:
            cookies.append(uuid.uuid4().hex)
            stored.add_session(hash_secret(cookies[-1]), judge, ends)
    return cookies


class Judge:
    """A simulated judge in a browser session."""

    def __init__(self, url: str, cookie: str) -> None:
        self.client = httpx.AsyncClient(
            base_url=url, headers={"X-Rankgauge": "script"}, timeout=60, cookies={"rankgauge_session": cookie}
        )
        self.rng = random.Random(cookie)  # noqa: S311 - a pace, not a secret
        self.times: list[float] = []
        self.errors = 0
        self.page = ""

    async def judge(self, tasks: int, think: tuple[float, float]) -> None:
        """Answer this many tasks."""
        answer = await self.client.get("/judge", follow_redirects=True)
        self.page = answer.text
        for _ in range(tasks):
            await asyncio.sleep(self.rng.uniform(*think))
            action = re.search(r'action="(/judge/[^"]+)" id="task"', self.page)
            token = re.search(r'name="csrf" value="([^"]+)"', self.page)
            form = {"choice": str(uuid.uuid4()), "pick": "1", "seconds": "8"}
            start = time.perf_counter()
            answer = await self.client.post(
                action[1] if action else "/", data=form | ({"csrf": token[1]} if token else {})
            )
            self.times.append(time.perf_counter() - start)
            self.errors += answer.status_code != 200
            self.page = answer.text
        await self.client.aclose()


async def load(url: str, cookies: list[str], tasks: int, think: tuple[float, float]) -> tuple[list[float], int]:
    """Return the sorted response times of all judges and the number of errors."""
    judges = [Judge(url, cookie) for cookie in cookies]
    await asyncio.gather(*(each.judge(tasks, think) for each in judges))
    times = sorted(took for each in judges for took in each.times)
    return times, sum(each.errors for each in judges)


def rows(url: str, cookies: list[str], choices: int, *, tiny: bool) -> Iterator[tuple[str, ...]]:
    """Yield a row for one judge and a row for all judges."""
    alone = load(url, cookies[:1], 3 if tiny else 100, (0.0, 0.0))
    yield line(1, choices, *asyncio.run(alone), goal=("median", 100))
    together = load(url, cookies, 2 if tiny else 10, (0.0, 0.1) if tiny else (4.0, 12.0))
    yield line(len(cookies), choices, *asyncio.run(together), goal=("99th percentile", 300))


def line(judges: int, choices: int, times: list[float], errors: int, *, goal: tuple[str, int]) -> tuple[str, ...]:
    """Return a row of the table, with the goal and whether it is missed."""
    middle, late = (1000 * times[int(len(times) * share)] for share in (0.5, 0.99))
    missed = errors or (middle if goal[0] == "median" else late) >= goal[1]
    text = f"{goal[0]} under {goal[1]} ms" + (", missed" if missed else "")
    counts = (str(judges), f"{choices:,}", str(len(times)), str(errors))
    return (*counts, number(middle), number(late), text)


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--project", type=Path, default=Path("build/benchmarks/judging.db"))
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    choices, judges = (60, 3) if given.tiny else (100_000, 50)
    given.project.parent.mkdir(parents=True, exist_ok=True)
    cookies = filled(given.project, choices, judges)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(given.project), str(port)], stdout=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                httpx.get(f"{url}/judge", timeout=60)
                break
            except httpx.ConnectError:
                time.sleep(0.1)
        text = table(HEAD, rows(url, cookies, choices, tiny=given.tiny))
    finally:
        server.terminate()
        server.wait(30)
    print(text)
    if given.write:
        put(given.write, "pages", text)


if __name__ == "__main__":
    main()
