"""Fixtures of all tests: the folder of real data, servers, and the hypothesis profile."""

import os
import signal
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from servers import database_of, installed_programs, postgres_of

from rankgauge.core import native

_CALM = [HealthCheck.too_slow, HealthCheck.data_too_large]

# Deterministic examples, so that a failure means a change, not chance.
settings.register_profile(
    "default", max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=_CALM
)
settings.register_profile("many", max_examples=300, deadline=None, print_blob=True, suppress_health_check=_CALM)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items):
    """Mark the functions that `scripts/list_long_tests.py` found to take long."""
    long = set(Path(__file__).with_name("long.txt").read_text(encoding="utf-8").split())
    for item in items:
        if item.nodeid.partition("[")[0] in long:
            item.add_marker(pytest.mark.long)


if not hasattr(signal, "SIGKILL"):
    signal.SIGKILL = signal.SIGTERM  # Windows has one way to end another process, and it cannot be refused

# Shells let background jobs ignore Ctrl-C, and processes started by tests would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _warned():
    """Warn of a missing core now, since a test that removes the core would be the first to do it."""
    with warnings.catch_warnings(action="ignore"):
        native.warn_if_missing()


@pytest.fixture(scope="session", autouse=True)
def _state_folder(tmp_path_factory):
    """Redirect the state folder, so that no test writes a key into the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of collections with values of other tools; skip without it."""
    named = os.environ.get("RANKGAUGE_TEST_DATA", "")
    if not named:
        pytest.skip("RANKGAUGE_TEST_DATA is not set: nothing was compared with the stored oracles")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"RANKGAUGE_TEST_DATA={named} is no folder")
    return folder


@pytest.fixture(scope="session")
def postgres_server():
    """The URL of a temporary server on a Unix socket; skip if PostgreSQL is missing."""
    with postgres_of(installed_programs()) as url:
        yield url


@pytest.fixture
def postgres(postgres_server, request):
    """The URL of a database for this test."""
    with database_of(postgres_server, request.node.nodeid) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    """A location for a store: a file, then a database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("postgres")
