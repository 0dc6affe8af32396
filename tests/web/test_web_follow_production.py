"""The complete how-to from a raw log to a refreshed evaluation set."""

import json
import re
import shutil

import pytest
from docs_scripts import DOCS, docs_script
from judging_pages import ORIGIN, sign_in
from starlette.testclient import TestClient

from rankgauge import read_qrels, sample_path
from rankgauge.judging import JudgingProject
from rankgauge.production import EventLog
from rankgauge.web import judging_app

pytest.importorskip("duckdb", reason="DuckDB is not installed")
pytestmark = pytest.mark.slow

PAGE = DOCS / "howto" / "follow-production.md"
_STEP = re.compile(r"(?m)^\$ (?P<command>.+)$|^```toml\n(?P<plan>(?s:.*?))^```$")


def judge(folder):
    """Judge every task on the pages: the first title with a word of the question, or none."""
    with JudgingProject(folder / ".rankgauge/store.db") as project:
        app = judging_app(project, log=EventLog(folder / "log"))
        with TestClient(app, base_url=ORIGIN) as client:
            sign_in(client, project, "Lena", "lead")
            for path in ("/production?wait=1", "/production/drift?wait=1", "/production/sample?n=30&wait=1"):
                assert client.get(path).status_code == 200
            page = client.get("/judge")
            while fields := dict(re.findall(r'name="(csrf|choice|opened)" value="(.*?)"', page.text)):
                if len(fields) < 3:
                    break
                question = words(re.search(r"(?s)<h1[^>]*>(.*?)</h1>", page.text)[1])
                titles = re.findall(r"(?s)<h2[^>]*>(.*?)</h2>", page.text)
                good = [n for n, title in enumerate(titles, 1) if question & words(title)]
                pick = str(good[0]) if good else "none"
                page = client.post(page.url.path, data=fields | {"pick": pick})
            return len([each for each in project.judgments() if each.choice])


def words(text):
    return {word for word in re.findall(r"\w{4,}", text.lower()) if word != "document"}


def test_the_how_to_goes_from_a_raw_log_to_a_refreshed_evaluation_set(tmp_path):
    shutil.copytree(sample_path("qrels.txt").parent, tmp_path / "sample")
    printed = docs_script("consoles").printed
    said = {}
    for step in _STEP.finditer(PAGE.read_text(encoding="utf-8")):
        if step["plan"]:
            (tmp_path / "rankgauge.toml").write_text(step["plan"])
        elif " serve " in step["command"]:
            assert judge(tmp_path) >= 30  # some tasks are shown twice
        else:
            name = " ".join(step["command"].split()[1:3])
            said[name] = printed(step["command"], str(tmp_path))
            fails = "--fail-if" in step["command"] or "--strict" in step["command"]
            assert ("(exit code" in said[name]) is fails, (step["command"], said[name])
    assert "(exit code 1)" in said["logs metrics"]
    assert "REFRESH" in said["logs health"]
    assert "ALERT: idk_rate is above 0.2: 0.333" in said["status --strict"]
    picture = (tmp_path / "drift.html").read_text(encoding="utf-8")
    assert picture.count('class="evaluation"') == 30
    lines = (tmp_path / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    refreshed = {json.loads(line)["id"] for line in lines}
    assert len(refreshed) == 30
    assert set(read_qrels(tmp_path / "refreshed.qrels")) == refreshed
    assert "effective" in said["evaluate refreshed.qrels"]
