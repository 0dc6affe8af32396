"""A stand-in for Windows: functions and modules that Python does not have there are removed.

A process that finds a copy of this file as ``sitecustomize.py`` on its path runs it first. The locks
of Windows (``msvcrt``) are replaced by those of this system; whether those of Windows work is shown
by the tests that run there.
"""

# Modules of Python that need what is removed, and have another form on Windows.
import asyncio  # noqa: F401
import fcntl
import multiprocessing.util  # noqa: F401
import os
import signal
import subprocess  # noqa: F401
import sys
import types


def _locking(file: int, mode: int, count: int) -> None:
    assert (mode, count) == (2, 1)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


if __name__ == "sitecustomize":  # pytest imports all files of the folder
    sys.modules["msvcrt"] = types.ModuleType("msvcrt")
    vars(sys.modules["msvcrt"]).update(LK_NBLCK=2, locking=_locking)
    for module in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
        sys.modules[module] = None
    _FUNCTIONS = "chown fchmod fork forkpty getegid geteuid getpgid killpg lockf mkfifo nice \
    pread pwrite register_at_fork sched_getaffinity setsid statvfs sysconf O_NOFOLLOW O_DIRECTORY"
    for name in _FUNCTIONS.split():
        vars(os).pop(name, None)
    for name in ("SIGALRM", "SIGHUP", "SIGUSR1", "alarm", "pthread_kill", "setitimer"):
        vars(signal).pop(name, None)
