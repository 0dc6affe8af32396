"""The steps of action.yml, run by bash as GitHub does, with an API of comments on this computer."""

import json
import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from rankgauge.sample import sample_path

ROOT = Path(__file__).parents[1]
QRELS, BM25, KEYWORD = (str(sample_path(name)) for name in ("qrels.txt", "runs/bm25.run", "runs/keyword.run"))
# One run block of each step, by its name; inputs reach it only in its environment.
STEPS = dict(
    re.findall(
        r"    - name: (.*)\n(?:      .*\n)*?      run: (\|\n(?:        .*\n?)+|.*)", (ROOT / "action.yml").read_text()
    )
)


@pytest.mark.parametrize("name", STEPS)
def test_no_step_inserts_an_input_or_an_event_into_a_script(name):
    assert len(STEPS) == 3
    assert "${{" not in STEPS[name]


class GitHub(ThreadingHTTPServer):
    """The part of GitHub's REST API that reads and writes comments of an issue."""

    def __init__(self, *, status=200):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.requests, self.comments, self.ids = status, [], [], count(100)

    def add(self, body, kind):
        self.comments.append({"id": next(self.ids), "body": body, "user": {"type": kind}})
        return self.comments[-1]


class Handler(BaseHTTPRequestHandler):
    def answer(self):
        assert self.headers["Authorization"] == "Bearer secret"
        url = urlsplit(self.path)
        sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        self.server.requests.append((self.command, url.path))
        status, found = self.server.status, {}
        if status == 200:
            match self.command:
                case "GET":
                    size, page = (int(parse_qs(url.query)[name][0]) for name in ("per_page", "page"))
                    found = self.server.comments[size * (page - 1) : size * page]
                case "POST":
                    status, found = 201, self.server.add(sent["body"], "Bot")
                case "PATCH":
                    found = next(each for each in self.server.comments if each["id"] == int(url.path.split("/")[-1]))
                    found["body"] = sent["body"]
        text = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PATCH = answer  # noqa: N815 - names of the library

    def log_message(self, *_):
        pass


@contextmanager
def github(**options):
    with GitHub(**options) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def step(name, folder, **more):
    """Run a step; return it with the texts that it wrote to the files of GitHub."""
    script = STEPS[name].removeprefix("|\n").replace("\n        ", "\n")
    files = {f"GITHUB_{kind}": str(folder / kind) for kind in ("OUTPUT", "STEP_SUMMARY")}
    for path in files.values():
        Path(path).write_text("")
    env = {**os.environ, **files, "GITHUB_ACTION_PATH": str(ROOT), "RUNNER_TEMP": str(folder), "GITHUB_ACTION": "a"}
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
    done = subprocess.run(command, env=env | more, cwd=folder, capture_output=True, text=True, check=False)
    return done, {kind: Path(path).read_text() for kind, path in files.items()}


def gate(folder, server, arguments, *, number=7, comment="true", **more):
    (folder / "event.json").write_text(json.dumps({"pull_request": {"number": number}} if number else {}))
    inputs = {"GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}"}
    inputs |= {"GATE_ARGUMENTS": arguments, "GATE_NAME": "gate", "GATE_COMMENT": comment, "GATE_TOKEN": "secret"}
    done, files = step(
        "Run the gate",
        folder,
        PYTHON=sys.executable,
        GITHUB_EVENT_PATH=str(folder / "event.json"),
        GITHUB_REPOSITORY="owner/name",
        GITHUB_SERVER_URL="https://host.example",
        GITHUB_RUN_ID="42",
        **inputs | more,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].splitlines()), files


@pytest.fixture
def folder(tmp_path):
    command = [sys.executable, "-m", "rankgauge", "gate", QRELS, BM25, "--update-baseline"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def test_a_failed_gate_is_reported_and_fails_the_job_at_the_end(folder):
    with github() as server:
        log, outputs, files = gate(folder, server, f"'{QRELS}' '{KEYWORD}'")
    assert (outputs["verdict"], outputs["code"]) == ("FAIL", "1")
    assert "FAIL" in files["GITHUB_STEP_SUMMARY"]
    assert re.search(r"(?m)^::error title=", log)
    assert {path.name for path in Path(outputs["folder"]).iterdir()} == {"gate.html", "gate.json", "gate.xml"}
    (comment,) = server.comments
    assert comment["body"].startswith('<!-- rankgauge "gate" -->\n### rankgauge gate: FAIL\n\n```text\nFAIL: keyword\n')
    assert "https://host.example/owner/name/actions/runs/42" in comment["body"]
    assert len(comment["body"].splitlines()) <= 32
    assert "::error" not in comment["body"]
    assert step("Fail if the gate fails", folder, CODE=outputs["code"])[0].returncode == 1


def test_the_comment_of_an_earlier_run_is_updated_also_among_many(folder):
    with github() as server:
        gate(folder, server, f"{QRELS} {KEYWORD}")
        mine = server.comments.pop()
        for number in range(150):
            server.add(f"comment {number}", "User")
        server.comments.append(mine)
        gate(folder, server, f"{QRELS} {BM25}")
    assert [method for method, _ in server.requests] == ["GET", "POST", "GET", "GET", "PATCH"]
    assert len(server.comments) == 151
    assert "### rankgauge gate: IDENTICAL" in mine["body"]


def test_a_person_who_copies_the_marker_gets_no_update(folder):
    with github() as server:
        copied = server.add('<!-- rankgauge "gate" -->', "User")
        gate(folder, server, f"{QRELS} {BM25}")
    assert copied["body"] == '<!-- rankgauge "gate" -->'
    assert len(server.comments) == 2


def test_an_error_is_the_summary_and_the_comment(folder):
    with github() as server:
        _, outputs, files = gate(folder, server, f"{QRELS} missing.run")
    assert (outputs["verdict"], outputs["code"]) == ("ERROR", "2")
    assert "error: missing.run: there is no such file" in files["GITHUB_STEP_SUMMARY"]
    assert "there is no such file" in server.comments[0]["body"]


def test_without_a_pull_request_or_permission_the_gate_runs_without_a_comment(folder):
    with github(status=403) as server:
        log, outputs, _ = gate(folder, server, f"{QRELS} {BM25}")
        assert "::notice title=rankgauge::no comment on the pull request: HTTP Error 403" in log
        assert outputs["verdict"] == "IDENTICAL"
        assert len(server.requests) == 1
        log, _, _ = gate(folder, server, f"{QRELS} {BM25}", GITHUB_API_URL="http://127.0.0.1:1")
        assert "no comment on the pull request: <urlopen error" in log
        gate(folder, server, f"{QRELS} {BM25}", number=None)
        gate(folder, server, f"{QRELS} {BM25}", comment="false")
        assert len(server.requests) == 1


def test_names_cannot_run_commands_of_the_shell_or_of_the_workflow(folder):
    name = "$(touch hacked)`touch hacked`; touch hacked @everyone ```` ::set-output name=x::y"
    hostile = folder / f"{name}.run"
    hostile.write_text(Path(KEYWORD).read_text())
    with github() as server:
        log, outputs, _ = gate(folder, server, f"{QRELS} '{hostile.name}'", GATE_NAME="a --> @all")
    assert outputs["verdict"] == "FAIL"
    assert not (folder / "hacked").exists()
    stopped, screen, started = re.search(r"::stop-commands::(\w+)\n(.*?)\n::(\w+)::\n", log, re.DOTALL).groups()
    assert stopped == started
    assert name[:20] in screen
    body = server.comments[0]["body"].splitlines()
    fence = next(line for line in body if line.startswith("`"))
    assert body.count(fence.removesuffix("text")) == 1
    assert log.count("\n::") == len(re.findall(r"(?m)^::(?:error|warning|notice) ", log)) + 1


@pytest.mark.slow
def test_the_action_installs_rankgauge_in_an_environment_of_its_own(tmp_path):
    env = {"PACKAGE": "", "PYTHONPATH": ""}
    done, files = step("Install rankgauge", tmp_path, **env)
    assert done.returncode == 0, done.stderr
    python = files["GITHUB_OUTPUT"].strip().removeprefix("python=")
    shown = subprocess.run(
        [python, "-c", "import rankgauge; print(rankgauge.__file__)"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(tmp_path) in shown.stdout
