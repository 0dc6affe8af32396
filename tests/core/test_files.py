import pytest

from rankgauge.core.files import write_atomically
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
    with (
        pytest.raises(InputError, match=what),
        write_atomically(tmp_path / name) as stream,
    ):
        stream.write(b"x")


def test_a_rankgauge_error_passes_unchanged(tmp_path):
    with pytest.raises(InputError, match="no id"), write_atomically(tmp_path / "a"):
        raise InputError("no id")
