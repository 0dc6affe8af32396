"""Run the gate of action.yml: print annotations, and comment on the pull request.

Usage: python github_gate.py FOLDER, where FOLDER gets the page, JSON, and JUnit XML of the result. The
environment has the inputs (GATE_*) and the variables of GitHub. No text of a file or an event becomes a
command of a shell or of the workflow.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

ANNOTATION = re.compile(r"(?m)^::(?:error|warning|notice) .*\n?")
MOST = 60_000  # characters; GitHub's limit of a comment is 65,536


def main() -> None:
    """Run the gate; its exit code is an output of the step, so that later steps run."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    reports = [f"--{kind}={folder}/gate.{suffix}" for kind, suffix in (("junit", "xml"), ("json", "json"))]
    reports += [f"--report={folder}/gate.html", "--github"]
    report = folder / "gate.json"
    report.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "rankgauge", "gate", *shlex.split(os.environ["GATE_ARGUMENTS"]), *reports],
        env={**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=False,
    )
    printed, errors = (text.decode("utf-8", "replace").replace("\r\n", "\n") for text in (done.stdout, done.stderr))
    verdict = json.loads(report.read_text(encoding="utf-8"))["verdict"] if report.exists() else "ERROR"
    screen = (errors if verdict == "ERROR" else ANNOTATION.sub("", printed)).strip("\n")
    # A line of the screen can contain ids that look like a workflow command.
    stop = secrets.token_hex(16)
    print(f"::stop-commands::{stop}\n{screen}\n::{stop}::\n{''.join(ANNOTATION.findall(printed))}", flush=True)
    append("GITHUB_OUTPUT", f"verdict={verdict}\ncode={done.returncode}\nfolder={folder}\n")
    if verdict == "ERROR":
        append("GITHUB_STEP_SUMMARY", fenced(screen))
    if os.environ["GATE_COMMENT"] == "true":
        comment(f"### rankgauge {os.environ['GATE_NAME']}: {verdict}\n\n{fenced(screen)}\n{links()}\n")


def append(variable: str, text: str) -> None:
    """Append to a file that GitHub reads after the step."""
    with Path(os.environ[variable]).open("a", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def fenced(text: str) -> str:
    """Return a text as a block of code that it cannot end, and in which nobody is mentioned."""
    text = text[:MOST]
    fence = "`" * max(3, 1 + max(map(len, re.findall("`*", text))))
    return f"{fence}text\n{text}\n{fence}\n"


def links() -> str:
    """Return a link to the workflow run, which has the page of the result."""
    server, repository, run = (os.environ[f"GITHUB_{name}"] for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    return f"[Summary and report]({server}/{repository}/actions/runs/{run})"


def comment(text: str) -> None:
    """Comment on the pull request of the event, or update the comment of an earlier run."""
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    number = event.get("pull_request", {}).get("number")
    if not isinstance(number, int):
        return
    marker = f"<!-- rankgauge {json.dumps(os.environ['GATE_NAME'])} -->"
    issues = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    body = {"body": f"{marker}\n{text}"}
    try:
        known = own(f"{issues}/{number}/comments", marker)
        if known is None:
            call(f"{issues}/{number}/comments", "POST", body)
        else:
            call(f"{issues}/comments/{known}", "PATCH", body)
    except OSError as error:
        # The token of a pull request from a fork is read-only, and GitHub may not respond.
        print(f"::notice title=rankgauge::no comment on the pull request: {error}")


def own(url: str, marker: str) -> int | None:
    """Return the id of the comment of an earlier run: a person who copies the marker gets no update."""
    page, comments = 1, [{}]
    while comments:
        comments = call(f"{url}?per_page=100&page={page}", "GET")
        for each in comments:
            if each["user"]["type"] == "Bot" and each["body"].startswith(marker):
                return int(each["id"])
        page += 1
    return None


def call(url: str, method: str, body: Any = None) -> Any:
    """Send a request to GitHub and return its JSON."""
    request = urllib.request.Request(  # noqa: S310 - the address of GitHub's API
        url,
        None if body is None else json.dumps(body).encode(),
        {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ['GATE_TOKEN']}",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
        method=method,
    )
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - the same
        return json.load(response)


if __name__ == "__main__":
    main()
