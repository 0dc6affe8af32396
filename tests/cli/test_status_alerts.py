"""``rankgauge status``: alerts, exit codes, and the webhook."""

import json
import os
import socket
import threading
import time

import pytest

pytest.importorskip("duckdb", reason="DuckDB is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

import pathlib

import duckdb
from production_logs import write_log
from restserver import serving
from tests.command import run

from rankgauge.project import sections

HEAD = 'collection = "."\nlog = "log.parquet"\n[retrievers.a]\ntype = "bm25"\n[alerts]\n'
IDK = "idk_rate = { max = 0.2 }\n"
SECRET = "s3cr3t-token-123456"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return write_log(tmp_path_factory.mktemp("log") / "log.parquet")


@pytest.fixture
def folder(tmp_path, log):
    """A project whose abstention rate shifts in the last weeks, and is above 0.2 in the last one."""
    place = tmp_path / "help center"
    place.mkdir()
    pathlib.Path(place / "log.parquet").symlink_to(log)
    return place


def status(folder, *words, text="", env=None):
    (folder / "rankgauge.toml").write_text(HEAD + text)
    return run("status", *words, cwd=folder, env=env)


def webhook(url, key=""):
    return IDK + f'webhook = "{url}/hook"\n' + (f'webhook_key_env = "{key}"\n' if key else "")


def test_alerts_are_shown_and_strict_exits_with_1(folder):
    done = status(folder, text=IDK)
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    assert "alerts 2 alerts" in text
    assert "ALERT: idk_rate is above 0.2: 0.3" in text
    assert "ALERT: idk_rate changed from 0.1" in text
    assert status(folder, "--strict", text=IDK).returncode == 1
    found = json.loads(status(folder, "--as", "json", text=IDK).stdout)["alerts"]["alerts"]
    assert [row["kind"] for row in found] == ["threshold", "shift"]


def test_strict_exits_with_4_if_nothing_can_be_checked(folder):
    other = "search_ctr = { min = 0.1 }\n"
    done = status(folder, "--strict", text=other)
    assert done.returncode == 1  # the shift
    assert "NOT DEFINED: search_ctr < 0.1: no " in " ".join(done.stdout.split())
    (folder / "log.parquet").unlink()
    done = status(folder, "--strict", text=other)
    assert (done.returncode, "not checked" in done.stdout) == (4, True)
    assert status(folder, text=other).returncode == 0
    (folder / "rankgauge.toml").write_text(f'collection = "."\n[alerts]\n{IDK}')
    done = run("status", "--strict", cwd=folder)
    assert (done.returncode, "not checked: there is no production log" in done.stdout) == (4, True)
    (folder / "rankgauge.toml").write_text('collection = "."\n')
    done = run("status", "--strict", cwd=folder)
    assert (done.returncode, "alerts" in done.stdout) == (0, False)


def test_a_faulty_threshold_is_an_error(folder):
    done = status(folder, text="idk = { max = 0.2 }\n")
    assert done.returncode == 2
    assert "line 6, alerts.idk" in done.stderr


def test_the_webhook_receives_alerts_without_texts_or_names(folder, log):
    asked = []

    def answer(request):
        asked.append(request)
        return 200, {}, b"ok"  # not JSON

    with serving(answer) as url:
        text = webhook(url, key="ALERT_KEY") + 'address = "https://gauge.example.org/"\n'
        done = status(folder, "--strict", "--notify", text=text, env={"ALERT_KEY": SECRET})
    assert (done.returncode, done.stderr) == (1, "")
    (request,) = asked
    assert (request.method, request.path) == ("POST", "/hook")
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.headers["content-type"] == "application/json"
    body = json.loads(request.content)
    assert set(body) == {"project", "alerts"}
    assert body["project"] == "help center"
    assert [row["link"] for row in body["alerts"]] == ["https://gauge.example.org/production/metrics/idk_rate"] * 2
    assert {frozenset(row) for row in body["alerts"]} == {
        frozenset(["metric", "kind", "sentence", "value", "low", "high", "since", "until", "threshold", "p", "link"])
    }
    assert body["alerts"][0]["threshold"] == "idk_rate > 0.2"
    for word in ("renew", "An answer", "u12", str(folder)):
        assert word not in request.content.decode()


def test_nothing_is_sent_without_an_alert_but_settings_are_checked(folder, log):
    asked = []
    (folder / "log.parquet").unlink()
    duckdb.execute(f"COPY (FROM '{log}' WHERE time < '2026-05-20') TO '{folder}/log.parquet'")  # before the shift
    with serving(lambda request: asked.append(request) or (200, {}, {})) as url:
        quiet = webhook(url).replace("0.2", "0.9")
        assert status(folder, "--strict", "--notify", text=quiet).returncode == 0
        done = status(folder, "--notify", text=quiet + 'webhook_key_env = "UNSET_KEY"\n')
        assert (done.returncode, "UNSET_KEY is not set" in done.stderr) == (2, True)
    assert asked == []
    done = status(folder, "--notify", text=IDK)
    assert (done.returncode, "RANKGAUGE_WEBHOOK" in done.stderr) == (2, True)
    done = status(folder, "--notify", text=IDK + 'webhook = "example.org"\n')
    assert (done.returncode, "line 7, alerts.webhook" in done.stderr) == (2, True)


def test_the_address_may_be_in_the_environment(folder):
    asked = []
    with serving(lambda request: asked.append(request.path) or (204, {}, b"")) as url:
        env = {"RANKGAUGE_WEBHOOK": f"{url}/services/T0/B0/{SECRET}"}
        assert status(folder, "--notify", text=webhook("http://127.0.0.1:9"), env=env).returncode == 0
    assert asked == [f"/services/T0/B0/{SECRET}"]


def test_a_server_that_fails_twice_is_asked_again(folder, monkeypatch):
    statuses = [503, 429, 200]
    waited = []
    monkeypatch.setattr(time, "sleep", waited.append)
    with serving(lambda _: (statuses.pop(0), {"Retry-After": "3600"} if len(statuses) == 1 else {}, {})) as url:
        done = status(folder, "--strict", "--notify", text=webhook(url))
    assert (done.returncode, done.stderr, statuses) == (1, "", [])
    assert [seconds for seconds in waited if seconds >= 0.5] == [0.5, 10.0]  # the server may ask for an hour


@pytest.mark.parametrize("code", [302, 401, 404])
def test_a_server_that_refuses_is_reported_once_and_exits_with_2(folder, code):
    asked = []
    with serving(
        lambda request: asked.append(request) or (code, {"Location": "http://127.0.0.1:9"}, {"no": SECRET})
    ) as url:
        done = status(folder, "--strict", "--notify", text=webhook(url, "ALERT_KEY"), env={"ALERT_KEY": SECRET})
    assert (done.returncode, len(asked)) == (2, 1)
    assert f"2 alerts not sent: the server answered {code}" in done.stderr
    assert "fix: check [alerts] webhook" in done.stderr
    assert "ALERT: idk_rate" in done.stdout
    assert SECRET not in done.stderr + done.stdout


def test_a_server_that_is_slow_or_absent_ends_in_time(folder, monkeypatch):
    monkeypatch.setattr(sections, "_TIMEOUT", 0.2)
    monkeypatch.setattr(sections, "_ATTEMPTS", 2)
    free = threading.Event()
    with serving(lambda _: (200, {}, {"waited": free.wait(20)})) as url:
        began = time.monotonic()
        done = status(folder, "--notify", text=webhook(url))
        free.set()
    assert (done.returncode, time.monotonic() - began < 10) == (2, True)
    assert "2 alerts not sent: no complete response within 0.2 seconds" in done.stderr
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    done = status(folder, "--notify", text=webhook(address))
    assert (done.returncode, "the server cannot be reached" in done.stderr) == (2, True)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_file_of_another_user_sends_nothing(folder):
    asked = []
    with serving(lambda request: asked.append(request) or (200, {}, {})) as url:
        assert status(folder, text=webhook(url, "HOME")).returncode == 0
        os.chown(folder / "rankgauge.toml", 12345, -1)
        for env in ({}, {"RANKGAUGE_WEBHOOK": url}):
            done = run("status", "--strict", "--notify", cwd=folder, env=env)
            assert (done.returncode, "belongs to another user" in done.stderr) == (2, True)
        assert run("status", "--strict", cwd=folder).returncode == 1
    assert asked == []
