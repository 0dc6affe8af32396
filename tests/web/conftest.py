"""A judging project, and a client of its pages without a network."""

import shutil
import warnings

import pytest

pytest.importorskip("starlette", reason="without Starlette there are no pages to test")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer versions prefer httpx2
    from starlette.testclient import TestClient

from evaluated_project import create_evaluated
from judging_pages import ORIGIN, filled
from judging_site import chromium, served

from rankgauge import Project
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


@pytest.fixture(scope="session")
def _evaluated_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluated") / "handbook"
    project = create_evaluated(folder)
    with project.judging, project.evaluations:
        return folder


@pytest.fixture
def evaluated(tmp_path, _evaluated_folder):
    project = Project(shutil.copytree(_evaluated_folder, tmp_path / "handbook"))
    project.open_judging()
    with project.judging, project.evaluations:
        yield project
