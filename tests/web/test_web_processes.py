"""Fifty judges at two servers of one project, which end by signals while commands use it."""

import re
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from judging_pages import filled
from stores import ORDERS, STORES, visit, wait_for

from rankgauge.judging import JudgingProject, Settings, hash_secret
from rankgauge.store import WholeStore

pytestmark = pytest.mark.slow
JUDGES = 50


class Server:
    """``rankgauge serve`` on a free port."""

    def __init__(self, where):
        words = [sys.executable, "-m", "rankgauge", "serve", "--store", where, "--port", "0"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.url = re.search("http://[^/]+", self.process.stdout.readline())[0]

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait(60)
        self.process.stdout.close()


class Judges:
    """People who judge at any of the servers that run, and the choices that were confirmed."""

    def __init__(self, where):
        self.confirmed = []
        self.servers = []
        self.errors = []
        self._stopped = threading.Event()
        ends = datetime.now(UTC) + timedelta(days=1)
        with JudgingProject(where) as project:
            people = [project.add_judge(f"Judge {number}")[0] for number in range(JUDGES)]
            with project.writing() as stored:
                for each in people:
                    stored.add_session(hash_secret(each.id), each.id, ends)
        self._pool = ThreadPoolExecutor(8)
        self._work = [self._pool.submit(self._judge, people[n::8]) for n in range(8)]

    def _judge(self, people):
        """Let these people judge in turn, each at another server than before."""
        with httpx.Client(timeout=60, headers={"X-Rankgauge": "script"}) as client:
            number = 0
            while not self._stopped.is_set():
                number += 1
                client.cookies = {"rankgauge_session": people[number % len(people)].id}
                servers = self.servers
                if not servers:
                    self._stopped.wait(0.01)
                    continue
                try:
                    self._choose(client, servers[number % len(servers)].url)
                except httpx.TransportError:
                    continue  # the server has ended: nothing was confirmed
                except AssertionError as error:
                    self.errors.append(error)

    def _choose(self, client, url):
        page = client.get(f"{url}/judge", follow_redirects=True).text
        action = re.search(r'action="(/judge/[^"]+)" id="task"', page)
        assert action, re.sub("<[^>]*>", "", page)[-400:]
        choice = str(uuid.uuid4())
        token = re.search(r'name="csrf" value="([^"]+)"', page)[1]
        form = {"choice": choice, "pick": "1", "csrf": token}
        answer = client.post(url + action[1], data=form)
        assert answer.status_code == 200, answer.text
        self.confirmed.append(choice)

    def go_on(self, count=30):
        """Wait until this many more choices are confirmed."""
        reached = len(self.confirmed)
        wait_for(lambda: len(self.confirmed) > reached + count or self.errors)
        assert not self.errors

    def stop(self):
        self._stopped.set()
        self._pool.shutdown()


@pytest.mark.parametrize("signals", ORDERS)
def test_two_servers_and_all_commands_lose_no_confirmed_choice(where, signals, tmp_path):
    filled(where, 120, 6, Settings(repeats=0.0)).close()
    judging = STORES["judging"]
    judges = Judges(where)
    one, two = judges.servers = [Server(where), Server(where)]
    try:
        judges.go_on()
        visit("judging", where, tmp_path / "visit")
        before = set(judges.confirmed)
        assert before <= judging.ids(where)
        judges.go_on()
        judges.servers = [two]
        one.end(signals[0])
        judges.go_on()
        judges.servers = []
        two.end(signals[1])
        assert set(judges.confirmed) <= judging.ids(where)
        judges.servers = [one] = [Server(where)]
        judges.go_on()
        one.end(signals[2])  # in the middle of requests
    finally:
        judges.servers = []
        judges.stop()
        for each in (one, two):
            each.process.kill()
    confirmed = set(judges.confirmed)
    assert confirmed <= judging.ids(where)
    with JudgingProject(where) as project:
        judged = {each.choice.id for each in project.judgments() if each.choice}
        assert judged == judging.ids(where)
        # No set of documents was assigned to more people than the settings allow.
        WholeStore(where).backup(tmp_path / "copy.zip")
    WholeStore(tmp_path / "restored.db").restore(tmp_path / "copy.zip")
    assert confirmed <= judging.ids(tmp_path / "restored.db")
