"""``rankgauge logs metrics``."""

import json

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from tests.command import run
from tests.online_loops import random_events, write_events


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return str(
        write_events(tmp_path_factory.mktemp("log") / "log.parquet", random_events(5, 200))
    )
