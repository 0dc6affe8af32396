"""Keyed hashes of values that must not be stored; the key stays on the machine."""

import hashlib
import hmac
import json
import stat
import subprocess
import sys

import pytest

from rankgauge.core.keyed_hash import keyed_hash

CODE = "from rankgauge.core.keyed_hash import keyed_hash; print(keyed_hash({'x-key': 'abc'}))"


def hashed_in_a_process():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_values_have_different_hashes_that_are_stable_over_processes(folder):
    first = keyed_hash({"x-key": "abc"})
    assert first == keyed_hash({"x-key": "abc"}) == hashed_in_a_process()
    assert first != keyed_hash({"x-key": "abd"})
    assert len(first) == 32
    assert [path.name for path in (folder / "rankgauge").iterdir()] == ["key"]


def test_the_key_is_readable_by_its_owner_only(folder):
    keyed_hash("abc")
    mode = (folder / "rankgauge" / "key").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_it_is_no_plain_hash(folder):
    text = json.dumps("abc").encode()
    found = keyed_hash("abc")
    assert found not in hashlib.sha256(text).hexdigest()
    key = (folder / "rankgauge" / "key").read_bytes()
    assert found in hmac.new(key, text, "sha256").hexdigest()


def test_with_another_key_it_is_another_hash(folder, tmp_path, monkeypatch):
    first = keyed_hash("abc")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other machine"))
    assert keyed_hash("abc") != first
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    assert keyed_hash("abc") == first


def test_without_a_writable_folder_the_key_is_per_process(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert keyed_hash("abc") == keyed_hash("abc")
    assert keyed_hash("abc") != keyed_hash("abd")


def test_a_damaged_key_is_not_used(folder):
    (folder / "rankgauge").mkdir(parents=True)
    (folder / "rankgauge" / "key").write_bytes(b"")
    weak = hmac.new(b"", json.dumps("abc").encode(), "sha256").hexdigest()
    assert keyed_hash("abc") not in weak
