"""The command line: each command reads, calls the public API, and prints."""

from rankgauge.cli.main import main

__all__ = ["main"]
