import pytest

from rankgauge.core.files import create_privately, write_atomically
from rankgauge.errors import InputError


def test_an_error_leaves_the_earlier_file_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"earlier")
    with pytest.raises(ZeroDivisionError), write_atomically(path) as stream:
        stream.write(b"half %d" % (1 // 0))
    assert path.read_bytes() == b"earlier"
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


def test_a_link_still_points_at_the_new_file(tmp_path):
    path, link = tmp_path / "a.txt", tmp_path / "link"
    path.write_bytes(b"earlier")
    link.symlink_to(path)
    with write_atomically(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize(
    ("name", "what"), [("gone/a.txt", "cannot be written: No such file"), (".", "this is a folder")]
)
def test_what_cannot_be_written_is_an_input_error(tmp_path, name, what):
    with pytest.raises(InputError, match=what), write_atomically(tmp_path / name) as stream:
        stream.write(b"x")


def test_a_rankgauge_error_passes_unchanged(tmp_path):
    with pytest.raises(InputError, match="no id"), write_atomically(tmp_path / "a"):
        raise InputError("no id")


def test_a_file_created_privately_never_replaces_another(tmp_path):
    target = tmp_path / "a.db"

    def create():
        with create_privately(target) as part:
            assert part.stat().st_mode & 0o777 == 0o600
            target.write_bytes(b"of another process")

    with pytest.raises(FileExistsError):
        create()
    assert target.read_bytes() == b"of another process"
    assert [one.name for one in tmp_path.iterdir()] == ["a.db"]


@pytest.mark.parametrize(
    ("private", "before", "after"),
    [(True, None, 0o600), (True, 0o644, 0o600), (False, 0o600, 0o600), (False, 0o640, 0o640)],
)
def test_a_private_file_is_readable_by_its_owner_only(tmp_path, private, before, after):
    path = tmp_path / "a.jsonl"
    if before is not None:
        path.touch()
        path.chmod(before)
    with write_atomically(path, private=private) as stream:
        (part,) = (each for each in tmp_path.iterdir() if each != path)
        assert part.stat().st_mode & 0o777 == after
        stream.write(b"x")
    assert path.stat().st_mode & 0o777 == after


def test_an_error_leaves_no_file_behind(tmp_path):
    with pytest.raises(ZeroDivisionError), create_privately(tmp_path / "a.db") as part:
        part.write_bytes(b"half %d" % (1 // 0))
    assert list(tmp_path.iterdir()) == []
