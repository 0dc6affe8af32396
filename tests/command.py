"""Run the command line in this process; a new interpreter is slower than most commands."""

import contextlib
import io
import os
import sys
from typing import NamedTuple
from unittest import mock

from rankgauge.cli import main


class Done(NamedTuple):
    """Exit code and output of a command."""

    returncode: int
    stdout: str
    stderr: str


def run(*words, stdin="", cwd=None, env=None):
    """Run `rankgauge WORDS...` in a folder, with additional environment variables."""
    encoding = (env or {}).get("PYTHONIOENCODING", "utf-8")
    given = stdin if isinstance(stdin, bytes) else (stdin or "").encode(encoding)
    out, err, into = (io.TextIOWrapper(io.BytesIO(text), encoding=encoding, newline="") for text in (b"", b"", given))
    folder = contextlib.chdir(cwd) if cwd else contextlib.nullcontext()
    with (
        folder,
        mock.patch.dict(os.environ, env or {}),
        mock.patch.multiple(sys, argv=["rankgauge", *map(str, words)], stdin=into, stdout=out, stderr=err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        out.flush()
        err.flush()
    raw = (stream.buffer.getvalue() for stream in (out, err))
    return Done(code, *(text.decode(encoding) for text in raw))
