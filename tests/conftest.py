"""What all tests share: the folder with real data, and how hard hypothesis tries."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from servers import database_of, installed_programs, postgres_of

_CALM = [HealthCheck.too_slow, HealthCheck.data_too_large]

# The same examples on every machine and every day: a red test is a changed number, not luck.
settings.register_profile(
    "default",
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=_CALM,
)
settings.register_profile(
    "ci", max_examples=600, deadline=None, print_blob=True, suppress_health_check=_CALM
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


# A shell lets its background jobs ignore Ctrl-C, and so would every process that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _state_folder(tmp_path_factory):
    """No test writes a key into the home of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of collections with what other tools said about them; skips aloud without."""
    named = os.environ.get("RANKGAUGE_TEST_DATA", "")
    if not named:
        pytest.skip("RANKGAUGE_TEST_DATA is not set: nothing was compared with the stored oracles")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"RANKGAUGE_TEST_DATA={named} is no folder")
    return folder


@pytest.fixture(scope="session")
def postgres_server():
    """The URL of a server of our own on a Unix socket; skips aloud where there is none."""
    with postgres_of(installed_programs()) as url:
        yield url


@pytest.fixture
def postgres(postgres_server, request):
    """The URL of a database of this test's own."""
    with database_of(postgres_server, request.node.nodeid) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    """A place for a store: once a file, once a database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("postgres")
