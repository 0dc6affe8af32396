"""Fixtures of the tests of benchmark scripts."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture
def script(tmp_path):
    """Run a benchmark script and return its output."""

    def ran(name, *words):
        done = subprocess.run(
            [sys.executable, str(FOLDER / name), *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return ran


@pytest.fixture
def ir_measures_reads_names():
    """Skip on Python versions where ir_measures cannot read names of measures."""
    if sys.version_info >= (3, 14):
        pytest.skip("ir_measures cannot read names on Python 3.14: nothing was compared with it")
