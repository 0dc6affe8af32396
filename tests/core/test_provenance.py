"""Provenance of numbers: commit and versions."""

import subprocess
from importlib.metadata import version

from rankgauge.core.provenance import Commit, current_commit, versions


def git(folder, *words):
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def test_a_checkout_has_a_commit_and_says_whether_files_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    assert current_commit() is None
    (tmp_path / "a").write_text("one", encoding="utf-8")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-qm", "one")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert current_commit() == Commit(head, dirty=False)
    (tmp_path / "new").write_text("not known to git", encoding="utf-8")
    assert current_commit() == Commit(head, dirty=False)
    (tmp_path / "a").write_text("two", encoding="utf-8")
    assert current_commit() == Commit(head, dirty=True)


def test_without_a_checkout_and_without_git_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert current_commit() is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert current_commit() is None


def test_versions_are_those_that_are_installed():
    found = versions()
    assert found["numpy"] == version("numpy")
    assert found["rankgauge"] == version("rankgauge")
    assert found["python"].startswith("3.")
