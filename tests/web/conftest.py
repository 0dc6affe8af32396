"""A judging project, and a client of its pages without a network."""

import warnings

import pytest

pytest.importorskip("starlette", reason="without Starlette there are no pages to test")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer versions prefer httpx2
    from starlette.testclient import TestClient

from evaluated_project import create_evaluated
from judging_pages import ORIGIN, filled
from judging_site import chromium, served

from rankgauge.web import judging_app

__all__ = ["chromium", "served"]


@pytest.fixture
def project(tmp_path):
    with filled(tmp_path / "judging.db") as project:
        yield project


@pytest.fixture
def client(project):
    with TestClient(judging_app(project), base_url=ORIGIN) as client:
        yield client


@pytest.fixture
def evaluated(tmp_path):
    project = create_evaluated(tmp_path / "handbook")
    with project.judging, project.evaluations:
        yield project
