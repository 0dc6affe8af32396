"""Reading of inputs, shared by several commands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

import rankgauge

_MARK = '"rankgauge/evaluation/'
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")


def unique_names(names: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Return the names of runs; if several files have the same name, their paths."""
    return [path if names.count(name) > 1 else name for name, path in zip(names, paths, strict=True)]


def located(path: str, format: str | None) -> str | rankgauge.formats.InFormat:
    """Return the path, with its format if one is given."""
    return path if format is None else rankgauge.formats.InFormat(path, format)


def read_runs(paths: Sequence[str], format: str | None = None, *, k: int | None = None) -> list[rankgauge.Run]:
    """Return the runs of these files with unique names, cut to the first k of each ranking."""
    runs = []
    for path in paths:
        source = located(path, format)
        if k is None:
            runs.append(rankgauge.Run.of(source))
        else:
            runs.append(rankgauge.cut(source, k, duplicates="best"))
    names = unique_names([run.name for run in runs], paths)
    return [rankgauge.Run.of(run, name=name) for run, name in zip(runs, names, strict=True)]


def named_paths(paths: Sequence[str], format: str | None = None) -> dict[str, str | rankgauge.formats.InFormat]:
    """Return paths of runs by run name, without reading the files."""
    names = unique_names([rankgauge.data.run_name(path) for path in paths], paths)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise rankgauge.InputError(f"duplicate run name {twice!r}", where="runs", fix="pass each file once")
    return {name: located(path, format) for name, path in zip(names, paths, strict=True)}


def read_evaluations(paths: Sequence[str]) -> list[rankgauge.Evaluation]:
    """Return the evaluations in files of JSON lines; none if the first file has other content."""
    from pathlib import Path

    if not Path(paths[0]).is_file() or _MARK not in _start(paths[0]):
        return []
    found, where = [], []
    for path in paths:
        try:
            lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
            every = [rankgauge.Evaluation.from_json(line) for line in lines if line.strip()]
        except OSError as error:
            raise rankgauge.InputError(
                f"cannot be read: {error.strerror or error}", where=path, fix="check the path"
            ) from None
        except rankgauge.RankgaugeError as error:
            raise rankgauge.InputError(error.what, where=path, fix=error.fix) from None
        found += every
        where += [path] * len(every)
    names = unique_names([one.run_name for one in found], where)
    return [replace(one, run_name=name) for one, name in zip(found, names, strict=True)]


def _start(path: str) -> str:
    with open(path, "rb") as stream:  # noqa: PTH123 - a path may be anything
        return stream.read(200).decode("utf-8", "replace")


def read_drift(path: str) -> dict[str, Any]:
    """Read the output of ``rankgauge logs drift``."""
    import json
    from pathlib import Path

    fix = "create one: rankgauge logs drift EVAL LOG -o drift.json"
    try:
        data = json.loads(Path(path).read_bytes())
        if str(data["schema"]).startswith("rankgauge/drift/"):
            drift_finding(data)
            return dict(data)
    except OSError as error:
        raise rankgauge.InputError(f"cannot be read: {error.strerror}", where=path, fix=fix) from None
    except (ValueError, LookupError, TypeError):
        pass
    raise rankgauge.FormatError("not a drift report", path=path, fix=fix)


def drift_finding(data: Mapping[str, Any]) -> rankgauge.Finding:
    """Return the finding of a drift report."""
    found = data["finding"]
    names = ("code", "severity", "message", "effect", "fix")
    return rankgauge.Finding(*(str(found[name]) for name in names))  # type: ignore[arg-type]


_ENCODERS = "hashing, model2vec:NAME, sentence-transformers:NAME, or openai-embeddings:NAME@URL"


def encoder_of(text: str, option: str, *, key_env: str | None = None, cache: str | None = None) -> Any:
    """Return the encoder of TYPE:NAME, with the types of plans; --search also accepts bm25."""
    from rankgauge import retrievers

    kind, _, name = text.partition(":")
    model, at, url = name.partition("@")
    if kind == "openai-embeddings" and model and at and url:
        return retrievers.EmbeddingEndpoint(url, model, key_env=key_env, cache=cache)
    try:
        return retrievers.named_encoder(text)
    except rankgauge.UnknownName:
        what, others = ("retriever", "bm25, ") if option == "--search" else ("encoder", "")
        raise rankgauge.UnknownName(
            f"unknown {what} {text!r:.80}", where=option, fix=f"choose {others}{_ENCODERS}"
        ) from None


def settings_of(pairs: Mapping[str, str]) -> dict[str, Any]:
    """Return settings: plain numbers, true, and false are converted, except in label and date."""
    from datetime import datetime

    try:
        datetime.fromisoformat(pairs.get("date", "2000-01-01"))
    except ValueError:
        raise click.BadParameter(
            f"got date={pairs['date']}, expected a date such as 2026-05-01", param_hint="--set"
        ) from None
    return {key: value if key in {"label", "date"} else _value(value) for key, value in pairs.items()}


def _value(text: str) -> str | float | bool:
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return {"true": True, "false": False}.get(text, text)
