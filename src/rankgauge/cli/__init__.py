"""The command line: each command reads, calls the door, prints; nothing else."""

from rankgauge.cli.main import main

__all__ = ["main"]
