"""Serve the pages of a judging project until the process ends: `python judging_server.py`.

Arguments: the project, the port, and optionally where the process kills itself: before or after the
choice is stored.
"""

import os
import signal
import sys

import uvicorn

from rankgauge.judging import JudgingProject
from rankgauge.web import judging_app


class Dying(JudgingProject):
    """A project whose process is killed while a choice is recorded."""

    when = ""

    def record(self, choice):
        if self.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        new = super().record(choice)
        if self.when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return new

    def next_task(self, judge, **options):
        task = super().next_task(judge, **options)
        if self.when == "next":
            os.kill(os.getpid(), signal.SIGKILL)
        return task


def main() -> None:
    """Serve the project."""
    where, port, when = sys.argv[1:4]
    with Dying(where) as project:
        project.when = when
        uvicorn.run(judging_app(project), host="127.0.0.1", port=int(port), log_level="error")


if __name__ == "__main__":
    main()
