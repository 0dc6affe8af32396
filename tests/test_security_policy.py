"""SECURITY.md states the limits of the code."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from rankgauge.formats import compression
from rankgauge.llm import chat

pages = pytest.importorskip("rankgauge.web.pages")
app = pytest.importorskip("rankgauge.web.app")
POLICY = " ".join((Path(__file__).parents[1] / "SECURITY.md").read_text(encoding="utf-8").split())


def test_sizes_and_days_are_those_of_the_code():
    assert f"above {vars(compression)['_HARMLESS'] >> 20} MiB and {vars(compression)['_RATIO']} times" in POLICY
    assert f"at most {vars(chat)['_MAX_BYTES'] >> 20} MiB" in POLICY
    assert f"expires after {vars(pages)['_DAYS']} days" in POLICY
    assert f"at most {vars(pages)['_MOST_BODY'] // 10**6} MB" in POLICY


def test_limits_of_requests_are_those_of_the_application():
    made = app.judging_app(SimpleNamespace(settings=SimpleNamespace(image=None)))
    votes, links = vars(made.state.votes), vars(made.state.failed_sign_ins)
    assert (votes["_per_sender"], votes["_seconds"]) == (600, 60)
    assert "at most 600 requests per minute" in POLICY
    assert (links["_per_sender"], links["_seconds"]) == (10, 300)
    assert "After ten invalid links from one address within five minutes" in POLICY
