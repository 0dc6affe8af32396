"""Commands and stores without the functions of POSIX that Windows does not have."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rankgauge

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="all other tests show it there"),
]
SAMPLE = Path(rankgauge.__file__).parent / "sample"
TESTS = Path(__file__).parent
STORES = (
    "benchmark/test_journal.py",
    "core/test_files.py",
    "core/test_keyed_hash.py",
    "core/test_project_file.py",
    "judging/test_store.py",
    "production/test_log.py",
    "production/test_log_import.py",
    "store",
)
COMMANDS = """
init .
bench
status
report --output report.html
gate bm25#1 --update-baseline
logs import --quiet --mapping {sample}/log/mapping.toml {sample}/log/searches.jsonl.gz log
logs metrics log
judge create --mode graded --questions queries.jsonl
judge pool --collection . --run {sample}/runs/bm25.run -k 5
store backup store.zip
"""
LOCKED = """
import os, subprocess, sys
from rankgauge.core.files import lock_file
with open("lock", "ab") as file:
    assert lock_file(file.fileno())
    if len(sys.argv) == 1:
        again = [sys.executable, "locked.py", "again"]
        assert subprocess.run(again, stderr=subprocess.DEVNULL).returncode == 1
        file.close()
        assert subprocess.run(again).returncode == 0
"""


@pytest.fixture
def run(tmp_path):
    """Run Python in a folder of its own, where the functions are removed."""
    shutil.copy(TESTS / "without_posix.py", tmp_path / "sitecustomize.py")  # importing it would change this process
    folder = tmp_path / "work"
    folder.mkdir()
    path = os.pathsep.join([str(tmp_path), str(Path(rankgauge.__file__).parents[1])])

    def start(*words, cwd=folder):
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout

    removed = "import os, sys; print(hasattr(os, 'fork') or hasattr(os, 'geteuid'), sys.modules['fcntl'])"
    assert start("-c", removed).split() == ["False", "None"]
    start.folder = folder
    return start


def test_the_main_commands_work(run):
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.txt"):
        shutil.copy(SAMPLE / name, run.folder)
    for line in COMMANDS.strip().splitlines():
        run("-m", "rankgauge", *line.format(sample=SAMPLE.as_posix()).split())
    assert (run.folder / "report.html").stat().st_size > 100_000


def test_a_file_is_locked_until_it_is_closed(run):
    (run.folder / "locked.py").write_text(LOCKED, encoding="utf-8")
    run("locked.py")


def test_the_tests_of_stores_pass(run):
    tests = [TESTS / name for name in STORES]
    fast = ("--quiet", "-p", "no:cacheprovider", "-m", "not slow and not long")
    said = run("-m", "pytest", *fast, *tests, cwd=TESTS.parent)
    assert int(said.split(" passed")[0].split()[-1]) > 200
