"""``rankgauge init``, ``status``, and ``serve``: create a project, show what it has, and serve its pages."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.judge import Address
from rankgauge.cli.output import Output, print_message, print_text, working
from rankgauge.cli.parameters import argument, command, option
from rankgauge.core.escaping import for_terminal
from rankgauge.core.text import many


@command()
def init(*, folder: str | None = argument("[FOLDER]")) -> None:
    """Create a project in FOLDER (default: the current one): write rankgauge.toml.

    The file describes what is in the folder: documents (Markdown, text, JSON lines, BEIR, TREC),
    questions, judgments, saved runs, and a production log. Edit it to change retrievers, measures,
    and the rules of the gate. An existing file is never overwritten.

    \b
    Examples:
      rankgauge init
      rankgauge init handbook
    """
    with working("reading the folder"):
        project = rankgauge.project.create_project(folder or ".")
    print_message(f"wrote {project.path}")
    runs = [f"{many(len(project.runs), 'saved run')}, such as {name}." for name in project.runs[:1]]
    if project.encoder == "hashing":
        runs.append(options.NO_MODEL)
    lines = (project.info.summary(), *project.info.notes, *runs, f"Next step: {project.next_step}")
    print_text("".join(f"{for_terminal(line)}\n" for line in lines))


@command()
def status(
    *,
    path: str | None = options.project,
    strict: bool = option("Exit with 1 if there is an alert, and with 4 if alerts cannot be checked."),
    notify: bool = option("Send alerts to the webhook of the project."),
    out: Output,
) -> None:
    """Show what the project has: documents, judgments, evaluations, alerts, and the most useful next step.

    An alert is a metric of the production log whose whole 95% interval is beyond a threshold in the
    table [alerts] of the project file, or a recent change of a metric for the worse.

    Exit codes: 0 success; 1 an alert, with --strict; 2 an error, or alerts that could not be sent;
    4 the log, or the metric of a threshold, cannot be checked, with --strict.

    \b
    Examples:
      rankgauge status
      rankgauge status handbook --strict --notify
    """
    with working("reading the project"):
        project = rankgauge.Project(path or ".")
        shown = project.status()
    out.print(shown)
    if notify:
        with working("sending the alerts"):
            rankgauge.project.send_alerts(shown.alerts, project.file)
    click.get_current_context().exit(shown.exit_code() if strict else 0)


@command()
def serve(
    *,
    path: str | None = options.project,
    address: Address,
    log: str | None = option(
        "A production log: leads see its metrics and question drift, and draw new questions.  [default: that "
        "of the project, if it exists]",
        "LOG",
    ),
    store: str | None = options.store,
    trust: bool = options.trust,
    job: int | None = option("Run this job, as the pages do.", "N", hidden=True),
    ask: str | None = option("Answer queries with this retriever, as the pages do.", "NAME", hidden=True),
) -> None:
    """Serve the pages of a project until you press Ctrl-C: evaluations, judging, jobs, and production.

    With a store of its own, serve only the pages on which people judge. The printed link signs you
    in as admin. It works once; each start prints a new one.

    \b
    Examples:
      rankgauge serve --open
      rankgauge serve handbook --port 9000
      rankgauge serve --store judging.db --log log
    """
    from rankgauge.judging import JudgingProject
    from rankgauge.production import EventLog

    file = rankgauge.core.find_project_file() if path is None else path
    project = None if file is None else rankgauge.Project(file, trust=trust)
    if job is not None and project is not None:
        _run(job, project, trust=trust)
        return
    if ask is not None and project is not None:
        _answer(ask, project)
        return
    if project is not None and store not in {None, str(project.file.store)}:
        project = None
    own = None if project is None else project.file.log
    events = log or (own if own and Path(own).exists() else None)
    with JudgingProject(store) if project is None else project.open_judging() as judging:
        address.serve(judging, None if events is None else EventLog(events), project, trust=trust)


def _answer(name: str, project: rankgauge.Project) -> None:
    """Answer queries of a page until it closes; what the retriever and its processes print is no answer."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in rankgauge.benchmark.answer_queries(project.plan, name, sys.stdin):
            print(line, file=answers, flush=True)


def _run(number: int, project: rankgauge.Project, *, trust: bool) -> None:
    """Run a job of a page: a command whose output is not shown."""
    from rankgauge.cli.main import cli
    from rankgauge.store import Jobs

    errors = io.StringIO()
    with Jobs(project.file.store) as jobs, redirect_stdout(io.StringIO()), jobs.running(number) as job:
        if job is None:  # another process runs it, or it was cancelled
            return
        with redirect_stderr(errors):
            try:
                trusting = ["--trust"] if trust and job.arguments[0] == "bench" else []
                code = cli.main([*job.arguments, *trusting], standalone_mode=False)
            except click.Abort:  # click's form of an interrupt
                raise KeyboardInterrupt from None
        if code:
            raise rankgauge.RankgaugeError(" ".join(errors.getvalue().split()))
