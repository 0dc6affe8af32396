"""The group of commands, and the one place where an error becomes an exit code."""

from __future__ import annotations

import os
import sys
import traceback

import click

import rankgauge
from rankgauge.cli.evaluate import evaluate
from rankgauge.cli.measures import measures

__all__ = ["main"]

_ERROR = 2
_INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(message="%(version)s", package_name="rankgauge")
def cli() -> None:
    """Measure retrieval: what was returned against what should have been.

    Exit codes: 0 fine, 1 a gate said no, 2 an error, 130 interrupted.
    """


cli.add_command(evaluate)
cli.add_command(measures)


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    sys.exit(_run())


def _run() -> int:
    try:
        cli.main(standalone_mode=False)
        # What is still buffered may meet a closed pipe: find out here, not at shutdown.
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return _ERROR
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except rankgauge.RankgaugeError as error:
        click.echo(f"error: {error}", err=True)
        return _ERROR
    except Exception:  # noqa: BLE001 - a crash must not look like the verdict of a gate (exit 1)
        traceback.print_exc()
        click.echo("error: this is a fault of rankgauge, not of your input", err=True)
        return _ERROR
    return 0
