"""The bundled sample collection: a small test collection about a library help center.

See ``README.md`` in this directory for the files, the grades and the licence (CC0-1.0).
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["sample_path"]

_ROOT = Path(__file__).resolve().parent


def sample_path(name: str) -> Path:
    """Return the path of a file of the sample collection.

    Args:
        name: File name relative to the sample directory, with forward slashes, such as
            ``"qrels.txt"`` or ``"runs/bm25.run"``.

    Returns:
        The absolute path of the file.

    Raises:
        FileNotFoundError: If the collection has no such file. The message lists the names
            that exist.

    Example:
        >>> sample_path("qrels.txt").name
        'qrels.txt'
        >>> sample_path("runs/bm25.run").is_file()
        True
    """
    available = sorted(
        path.relative_to(_ROOT).as_posix()
        for path in _ROOT.rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc"}
    )
    if name not in available:
        raise FileNotFoundError(f"no sample file {name!r}; available: {', '.join(available)}")
    return _ROOT / name
