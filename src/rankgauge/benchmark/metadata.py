"""A run file with a head that says what made it, after ir_metadata.

The head stands in lines that begin with ``#``, between ``# ir_metadata.start`` and ``#
ir_metadata.end``; it is YAML. Our reader passes over such lines; trec_eval does not.

Source:
    T. Breuer, J. Keller, P. Schaer, ir_metadata: An Extensible Metadata Schema for IR Experiments,
    SIGIR 2022.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankgauge.benchmark.run import BenchmarkRun, Errors
from rankgauge.core.files import write_atomically
from rankgauge.data.fingerprints import fingerprint
from rankgauge.data.model import Run, write_run

__all__ = ["run_metadata", "write_benchmark_run"]


def write_benchmark_run(
    run: BenchmarkRun,
    path: str | os.PathLike[str],
    *,
    errors: Errors = "refuse",
    head: bool = True,
) -> None:
    """Write the rankings as a TREC run, with what made them in a head.

    Args:
        run: What :meth:`Benchmark.run` made.
        path: The file; packed where it ends with ``.gz``, and then without a head.
        errors: ``refuse`` a run in which queries failed, or take their rankings as ``empty``.
        head: Whether to write the head; trec_eval and other tools read no file that has one.

    Raises:
        InputError: If it cannot be written, or queries failed and are refused.
    """
    rankings = run.ranked(errors)
    write_run(rankings, path)
    target = Path(path)
    if not head or target.suffix == ".gz":
        return
    body = target.read_bytes()
    with write_atomically(target) as stream:
        stream.write(run_metadata(run, rankings).encode() + body)


def run_metadata(run: BenchmarkRun, rankings: Run) -> str:
    """The head of a run file: what made the rankings, as YAML in lines that begin with ``#``.

    Args:
        run: What made them.
        rankings: The rankings.
    """
    settings = run.settings
    timing = settings.get("timing", {})
    said = {
        "ir_metadata.start": None,
        "schema version": "0.1",
        "tag": run.name,
        "platform": {
            "hardware": {
                "cpu": settings.get("machine", {}).get("processor", ""),
                "cores": settings.get("machine", {}).get("cores"),
            },
            "operating system": {"kernel": settings.get("machine", {}).get("system", "")},
            "software": {"libraries": _versions(settings)},
        },
        "method": {
            "automatic": True,
            "retrieval": [
                {"name": run.name, "method": settings.get("retriever", {}).get("type", "callable"),
                 "parameters": settings.get("retriever", {})}
            ],
            "depth": settings.get("k"),
        },
        "data": {"test_collection": settings.get("collection", {})},
        "research goal": {"evaluation": {"timing": timing}},
        "run": {"sha256": fingerprint(rankings), "started": settings.get("started", "")},
        "ir_metadata.end": None,
    }  # fmt: skip
    lines: list[str] = []
    for key, value in said.items():
        if value is None:
            lines.append(key)
        else:
            lines.extend(_yaml({key: value}))
    return "".join(f"# {line}\n" for line in lines)


def _versions(settings: Mapping[str, Any]) -> list[str]:
    own = settings.get("versions", {})
    theirs = settings.get("retriever", {}).get("versions", {})
    return [f"{name} {version}" for name, version in sorted({**own, **theirs}.items())]


def _yaml(value: Any, depth: int = 0) -> Iterator[str]:
    """Plain values as YAML; what is no mapping or list as JSON, which YAML reads."""
    pad = "  " * depth
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if inner and isinstance(inner, Mapping | list | tuple):
                yield f"{pad}{_key(key)}:"
                yield from _yaml(inner, depth + 1)
            else:
                yield f"{pad}{_key(key)}: {_plain(inner)}"
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            if isinstance(inner, Mapping) and inner:
                first, *rest = _yaml(inner, depth + 1)
                yield f"{pad}- {first.strip()}"
                yield from rest
            else:
                yield f"{pad}- {_plain(inner)}"


def _key(key: Any) -> str:
    return (
        str(key) if str(key).replace("_", "").replace(" ", "").isalnum() else json.dumps(str(key))
    )


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, default=str)
