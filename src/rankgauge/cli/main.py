"""The command group, and the only code that turns errors into exit codes."""

from __future__ import annotations

import gc
import importlib
import io
import os
import re
import sys
import warnings
from contextlib import suppress

import click

import rankgauge
from rankgauge.cli.output import print_message
from rankgauge.core.escaping import for_terminal

_ERROR = 2
_INTERRUPTED = 130


# The commands by purpose, in the order of their use, with their short help. It is repeated here,
# because reading it from the commands would load all of them.
_GROUPS = {
    "Start": {
        "init": "Create a project: one file that describes what is evaluated.",
        "status": "Show what a project has, and the next step.",
    },
    "Evaluate and compare": {
        "evaluate": "Evaluate runs against judgments.",
        "compare": "Compare runs with a baseline, query by query.",
        "diff": "Show the queries that changed between two runs.",
        "report": "Write an HTML report to one file.",
        "serve": "Serve evaluations and judging as web pages.",
        "spark": "Evaluate runs on Spark.",
        "sql": "Print SQL that computes measures in a warehouse.",
    },
    "Understand": {
        "diagnose": "Find likely causes of the errors of a run, and fixes.",
        "explain": "Explain a value step by step.",
        "check": "Check judgments, runs, and texts for errors.",
        "sensitivity": "Show the effect of ties and of unjudged documents.",
        "reliability": "Test whether judgments are fair to new runs.",
        "measures": "List the measures, or explain one.",
    },
    "Gate and track": {
        "gate": "Decide whether a run may replace the baseline.",
        "history": "List and track saved evaluations.",
        "store": "Back up, restore, export, and clean the store.",
    },
    "Judge": {"judge": "Let people judge documents."},
    "Evaluate answers": {"answers": "Evaluate generated answers, and find the limiting stage."},
    "Monitor production": {"logs": "Import production logs and compute metrics."},
    "Run retrievers": {
        "bench": "Run retrievers over a collection and compare them.",
        "explore": "Find the best configuration of a retriever.",
    },
    "Prepare data": {
        "collection": "Describe a collection and its quality problems.",
        "convert": "Write judgments, runs, or texts in another format.",
        "fuse": "Fuse runs into one, with or without tuning.",
        "cut": "Keep the first k documents of each query.",
        "sample": "Keep the same sample of queries in every file.",
    },
}
_COMMANDS = [name for group in _GROUPS.values() for name in group]
# The module of each command whose module has another name.
_MODULES = {
    command: module
    for module, commands in {
        "compare": "diff report",
        "diagnose": "explain sensitivity reliability measures",
        "spark": "sql",
        "bench": "explore",
        "collection": "check convert fuse cut sample",
        "project": "init status serve",
    }.items()
    for command in commands.split()
}


# By name in other tools: the option, command, argument, or value that is needed (empty: none), and the fix; {} is the
# command.
_CUTOFF = ("--measure", "write the cut-off in the name of the measure: -m nDCG@10")
_MEASURE = ("--measure", "write -m NAME, such as -m nDCG@10")
_RULES = (
    "--rules",
    'write it in rankgauge.toml: the lines [gate.measures] and "nDCG@10" = { margin = 0.02 }',
)
_OTHER_NAMES = {
    **dict.fromkeys(("-k", "--k", "--top-k", "--topk", "--cutoff"), _CUTOFF),
    **dict.fromkeys(
        ("-l", "--level", "--rel", "--relevance-level"),
        ("--measure", "write the relevance level in the measure: -m 'RR(rel=2)'"),
    ),
    **dict.fromkeys(("--metric", "--metrics"), _MEASURE),
    **dict.fromkeys(
        ("--qrels", "--qrel", "--judgments", "--truth", "--run", "--runs", "--results"),
        ("[QRELS]", "name the files without options, the judgments first: {} qrels.txt bm25.run"),
    ),
    **dict.fromkeys(("--margin", "-m", "--measure"), _RULES),
    **dict.fromkeys(
        ("--floor", "--min", "--threshold", "--fail-under"),
        ("--rules", _RULES[1].replace("margin = 0.02", "floor = 0.5")),
    ),
    **dict.fromkeys(
        ("run", "test", "score"),
        ("judge", "to evaluate a run, write rankgauge evaluate QRELS RUN; to run retrievers, rankgauge bench FOLDER"),
    ),
    **dict.fromkeys(
        ("start", "serve", "open"), ("create", "write rankgauge judge create --questions FILE, then rankgauge serve")
    ),
    **dict.fromkeys(
        ("-o", "--output", "--out", "--format", "--save-csv"),
        ("--as", "write the format and the file: --as csv > FILE"),
    ),
    **dict.fromkeys(("--history", "--project", "--verdicts"), ("--store", "write --store FILE")),
    **dict.fromkeys(("-v", "--verbose", "--all", "--details"), ("--full", "write --full")),
    **dict.fromkeys(("version", "-V"), ("--version", "write rankgauge --version")),
    **{f"--{name}": ("--as", f"write --as {name}") for name in ("csv", "html", "json", "latex", "markdown")},
    **dict.fromkeys(("--retriever", "--retrievers"), ("--only", "write --only NAME, such as --only bm25")),
    "help": ("", "write {} --help, or rankgauge COMMAND --help"),
    "metrics": ("measures", "write rankgauge measures"),
    "--tie-report": ("--ties", "write rankgauge sensitivity ties QRELS RUN"),
    "--unjudged-report": ("--unjudged", "write rankgauge sensitivity unjudged QRELS RUN"),
    "--engine": ("--memory", "write rankgauge spark QRELS RUN"),
    "--plot": ("--as", "write rankgauge report QRELS RUN, a page with plots"),
    "--for": ("--measure", "write the use case as a measure: -m rag"),
    "--label": ("--set", "write --set label=TEXT"),
    "excel": ("csv", "write --as csv, which spreadsheets open"),
    "xlsx": ("csv", "write --as csv, which spreadsheets open"),
    "yaml": ("json", "write --as json"),
    "ttest": ("t", "write --test t"),
    "permutation": ("randomization", "write --test randomization"),
}
_ARGUMENTS = ("--per-query", "write the measures without -m: rankgauge sql nDCG@10 RR")
_OF_SQL = {"-m": _ARGUMENTS, "--measure": _ARGUMENTS}
_UNKNOWN = re.compile(r"No such (option|command):? '?(.*?)'?\.?$|'(.*?)' is not one of ")


class _LazyGroup(click.Group):
    """Group that loads commands on demand and lists them by purpose."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # An unknown name may be a misspelling of any command: load all of them.
        for name in (cmd_name,) if cmd_name in _COMMANDS else _COMMANDS:
            module = importlib.import_module(f"rankgauge.cli.{_MODULES.get(name, name)}")
            self.add_command(getattr(module, name))
        return super().get_command(ctx, cmd_name)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        width = max(map(len, _COMMANDS))
        for title, group in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in group.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(message="%(version)s", package_name="rankgauge")
def cli() -> None:
    """Evaluate search and RAG: retrieval, answers, and quality in production.

    Exit codes: 0 success, 1 a gate or threshold failed or a check found an error, 2 an error, 3 a
    strict gate or threshold is inconclusive, 4 not comparable or undefined, 130 interrupted.
    """


def main() -> None:
    """Run the command line and exit with its exit code."""
    # NumPy starts a thread per core, which spins for about 30 ms before it sleeps. No command has
    # work for these threads that early: let them sleep at once.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    # Commands create many objects and little cyclic garbage.
    gc.set_threshold(100_000)
    warnings.formatwarning = lambda message, *_: f"Warning: {message}\n"
    sys.exit(_run())


def _run() -> int:
    for stream in (sys.stdout, sys.stderr):
        # An id that the terminal cannot encode must not suppress the whole table.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        # Gates return an exit code; the others return nothing.
        code = cli.main(prog_name="rankgauge", standalone_mode=False)
        # Flushing buffered output may hit a closed pipe: handle that here, not at shutdown.
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - a crash must not look like the verdict of a gate (exit 1)
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":  # DuckDB's Ctrl-C
            click.echo("interrupted", err=True)
            return _INTERRUPTED
        return _print_error(error)
    return code if isinstance(code, int) else 0


def _suggestion(error: click.UsageError) -> str:
    """Return a line with the fix of a wrong command line: the name or value that was meant, or else an example."""
    import difflib

    if error.ctx is None:
        return ""
    path, command = error.ctx.command_path, error.ctx.command
    unknown = _UNKNOWN.match(error.message)
    option = getattr(error, "param", None)
    if unknown is None and isinstance(option, click.Option) and not isinstance(error, click.MissingParameter):
        return f"\nfix: {' '.join(': '.join(option.get_help_record(error.ctx) or ()).split())}"
    # The first example in the help of the command.
    named = path.rpartition("rankgauge")[2]
    example = [
        *re.findall(rf"^ *(rankgauge{named} .*)", command.help or "", re.MULTILINE),
        "rankgauge evaluate qrels.txt bm25.run",
    ][0]
    if unknown is None:
        return f"\nfix: write it as in {example}"
    kind, name, value = unknown.groups()
    got = name or value
    commands = getattr(command, "commands", {})
    options = [option for parameter in command.params for option in parameter.opts if option[0] == "-"]
    known = {"command": [*commands], "option": options}.get(
        kind, [*getattr(getattr(option, "type", None), "choices", ())]
    )
    needed, fix = (_OTHER_NAMES | (_OF_SQL if command.name == "sql" else {})).get(got, ("", ""))
    close = [each for each in known if len(got) > 2 and each.startswith(got)] or difflib.get_close_matches(
        got, known, n=1, cutoff=0.8
    )
    below = [each for each, entry in commands.items() if got in getattr(entry, "commands", {})]
    if fix and needed in {"", *known, *options, *" ".join(command.collect_usage_pieces(error.ctx)).split()}:
        fix = fix.replace("{}", path)
    elif close:
        fix = f"did you mean {close[0]}?"
    elif below:
        fix = f"write {path} {below[0]} {got}"
    elif kind == "command" and (os.path.exists(got) or "." in got):  # noqa: PTH110 - pathlib is slow to load
        files = [word for word in example.split()[2 + bool(named) :] if word[0] != "-"]
        fix = f"name the command: {example.replace(files[0], got)}"
    else:
        fix = f"{path} --help lists the {kind or 'value'}s"
    return f"\nfix: {for_terminal(fix)}"


def _print_error(error: Exception) -> int:
    """Print an error and return the exit code."""
    if isinstance(error, BrokenPipeError):
        # The reader (head, less) closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, click.ClickException):
        # A group without a command shows its help.
        if not isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            fix = _suggestion(error) if isinstance(error, click.UsageError) else ""
            # Final only for type checkers; click itself suggests only similar names.
            vars(error).update(message=for_terminal(error.message) + fix, possibilities=None)
        error.show()
    elif isinstance(error, rankgauge.RankgaugeError):
        if error.what == "there is no such file":
            with suppress(rankgauge.RankgaugeError):  # it may be a measure
                named = dict.fromkeys(["nDCG@10", str(rankgauge.parse(error.where))])
                error.fix = f"separate measures by commas: -m {','.join(named)}"
        click.echo(f"error: {error}", err=True)
    elif isinstance(error, OSError):
        # Faults of inputs are our own errors, so this error is from the output.
        print_message(f"error: cannot write: {error.strerror or error}")
    elif isinstance(error, MemoryError):
        print_message("error: there is not enough memory for this input")
        print_message("fix: read it in parts: rankgauge evaluate --memory 1GB")
    else:
        import traceback

        for line in rankgauge.core.redact("".join(traceback.format_exception(error))).splitlines():
            print_message(line)
        click.echo("error: this is a bug in rankgauge, not in your input", err=True)
    return _ERROR
