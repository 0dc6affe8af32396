"""Bugs in what unpacks files and looks into archives, and in what reads files of columns."""

from __future__ import annotations

from planted.bug import Bug

__all__ = ["BUGS"]

BUGS = (
    Bug("packing: only the first member", "formats/packing.py",
        'data = self._rest(self._one.unused_data or b"")', 'data = b""'),
    Bug("packing: what is cut off is whole", "formats/packing.py",
        "                if not data:\n                    raise self._broken()\n",
        '                if not data:\n                    return b""\n'),
    Bug("packing: behind a fault is the end", "formats/packing.py",
        "            self._fault = error\n", ""),
    Bug("packing: no limit of what comes out", "formats/packing.py",
        "if self._given > _HARMLESS and too_many(", "if False and too_many("),
    Bug("packing: what is small may explode", "formats/packing.py",
        "return plain > max(_HARMLESS, _RATIO * packed)", "return plain > _RATIO * packed"),
    Bug("packing: xz takes any memory", "formats/packing.py",
        "lzma.LZMADecompressor(lzma.FORMAT_XZ, _MEMORY)",
        "lzma.LZMADecompressor(lzma.FORMAT_XZ)"),
    Bug("packing: a part of a sip is lost", "formats/packing.py",
        "        self._at += len(part)\n", "        self._at += max_length + 1\n"),
    Bug("packing: what is packed twice is text", "formats/lines.py",
        "    packing = _packing(start)\n    if packing is not None:\n        raise",
        "    packing = _packing(start)\n    if packing is None:\n        return\n    if False:\n"
        "        raise"),
    Bug("archives: no limit of what a member claims", "formats/archives.py",
        "if too_many(info.compress_size, info.file_size):", "if False:"),
    Bug("archives: a packed member counts by itself", "formats/archives.py",
        "unpacking(plain, packing, shown, size=packed)", "unpacking(plain, packing, shown)"),
    Bug("archives: one of two of a name", "formats/archives.py",
        "if self._counts[member] > 1:", "if False:"),
    Bug("archives: an archive in an archive", "formats/archives.py",
        "    if start.startswith(ZIP):\n", "    if False:\n"),
    Bug("judgments: the first of several files", "formats/judgments.py",
        "    if sole is not None and split is None:\n",
        "    sole = sole or archive.members[0]\n    if split is None:\n"),
    Bug("judgments: no word of other splits", "formats/judgments.py",
        "    if not splits:\n", "    if True:\n"),
    Bug("columns: few bytes become many rows", "formats/columnar.py",
        "            choice.small_enough(_ROW * taken, size)\n", ""),
    Bug("columns: what is packed is believed to be short", "formats/columnar.py",
        "        choice.small_enough(_claimed(file), size)\n", ""),
    Bug("columns: lists are ids", "formats/columnar.py",
        "        if inner.startswith(_PLAIN):\n            return\n", "        return\n"),
)  # fmt: skip
