"""The project file ``rankgauge.toml``: its keys, typed values, and errors with the line of a key.

Each package reads its own section. Nothing here imports code that a file names.
"""

from __future__ import annotations

import os
import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rankgauge.core.arguments import is_number, known_name
from rankgauge.core.files import read_text
from rankgauge.core.project_names import PROJECT_FILE
from rankgauge.errors import FormatError, InputError, RankgaugeError

_VERSION = 1
_KEYS: Mapping[str, tuple[type, ...]] = {
    "version": (int,),
    "collection": (str, dict),
    "measures": (list,),
    "k": (int,),
    "timed": (int,),
    "live_queries": (int,),
    "baseline": (str,),
    "store": (str,),
    **dict.fromkeys(("texts", "judge_names"), (bool,)),
    "log": (str,),
    **dict.fromkeys(("alerts", "answers", "bands", "evaluation", "explore"), (dict,)),
    **dict.fromkeys(("gate", "judging", "limits", "models", "retrievers"), (dict,)),
}
_WORDS = {
    str: "text in quotes",
    int: "a whole number",
    float: "a number",
    list: "a list",
    tuple: "a list",
    dict: "a table",
    bool: "true or false",
}
_DEEPEST = 30


def data_folder(folder: Path) -> Path:
    """Return the folder ``.rankgauge`` of a project; a new one is private and ignored by Git.

    Raises:
        InputError: If it cannot be created.
    """
    path = folder / ".rankgauge"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError), (path / ".gitignore").open("x") as stream:
            stream.write("*\n")
    except OSError as error:
        raise InputError(
            f"cannot be created: {error.strerror or error}", where=str(path), fix="check the permissions of the folder"
        ) from None
    return path


@dataclass(frozen=True)
class ProjectFile:
    """A project file, or a table in it, for reading values with errors that name their line.

    Attributes:
        path: The file; relative paths in it begin in its folder.
        data: The keys and tables of the file.
        text: The text of the file.
        keys: The keys of the table; empty for the whole file.
    """

    path: Path
    data: Mapping[str, Any]
    text: str = ""
    keys: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> ProjectFile:
        """Read a project file, or that in a folder, and check its version, keys, and types.

        Raises:
            FormatError: If the file is not valid TOML, has a later version, a value has the wrong
                type, or a value looks like a password or a key.
            UnknownName: For an unknown key; the message suggests similar names.
        """
        place = Path(path)
        if place.is_dir() and place.name != PROJECT_FILE:
            place /= PROJECT_FILE
        if place.suffix.lower() not in {".toml", ""} and place.is_file():
            raise FormatError(
                "this is not a project file: expected TOML",
                path=str(place),
                fix=f"pass the folder with the documents and questions: {place.parent}, or {PROJECT_FILE}",
            )
        text = read_text(place, fix="check the path, or create a project: rankgauge init")
        file = cls(place, _parse(text, str(place)), text)
        version = file.data.get("version", _VERSION)
        if version != _VERSION:
            raise file.error(
                f"got {version!r:.20}, but this rankgauge reads version {_VERSION}",
                "version",
                fix=f"pip install --upgrade rankgauge, or write version = {_VERSION}",
            )
        file.checked("the project", _KEYS)
        file._refuse_secrets()
        return file

    @property
    def folder(self) -> Path:
        """The folder of the file, as an absolute path."""
        return self.path.resolve().parent

    @property
    def store(self) -> str:
        """The path or URL of the store, in ``RANKGAUGE_STORE`` or in the file.

        A URL is that of an own file only, because the password is sent to it.
        """
        if named := os.environ.get("RANKGAUGE_STORE"):
            return named
        store = str(self.data.get("store", ".rankgauge/store.db"))
        if "://" not in store:
            return str(self.path.parent / store)
        self.check_owner()
        return store

    @property
    def baseline(self) -> str:
        """The retriever or saved evaluation with which others are compared, by default the first retriever."""
        retrievers = self.value({}, "retrievers").items()
        first = (name for name, table in retrievers if not isinstance(table, dict) or not table.get("part"))
        return str(self.value("", "baseline") or next(first, ""))

    @property
    def texts(self) -> bool:
        """Whether saved evaluations keep texts."""
        return bool(self.data.get("texts", True))

    @property
    def log(self) -> str | None:
        """The path of the production log; None without one."""
        return str(self.path.parent / self.data["log"]) if "log" in self.data else None

    def inside(self, *keys: str) -> ProjectFile:
        """Return a table inside this one."""
        return replace(self, keys=(*self.keys, *keys))

    def value(self, default: Any, *keys: str, kinds: tuple[type, ...] = ()) -> Any:
        """Return the value of a key, with the type of the default or one of `kinds`.

        Raises:
            FormatError: If the value has another type.
        """
        value = _inside(self.data, (*self.keys, *keys))
        if value is None:
            return default
        kinds = kinds or (type(default),)
        # A boolean is not a number.
        fits = isinstance(value, kinds) and (bool in kinds) == isinstance(value, bool)
        if is_number(value) if float in kinds else fits:
            return value
        raise self.error(
            f"got {value!r:.60}", *keys, fix=f"use {' or '.join(dict.fromkeys(map(_WORDS.__getitem__, kinds)))}"
        )

    def checked(self, name: str, known: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
        """Return this table after checking its keys and their types; without types, any value fits.

        Raises:
            FormatError: If a value has another type.
            UnknownName: For an unknown key.
        """
        table: dict[str, Any] = self.value({})
        for key in map(str, table):
            with self.at(key):
                known_name(f"key of {name}", key, known)
            if known[key]:
                self.value(None, key, kinds=known[key])
        return table

    def where(self, *keys: str) -> str:
        r"""Return the location of a key for messages: path, line, and dotted name.

        Example:
            >>> text = "[retrievers.dense]\nencoder = { type = 'hashing' }"
            >>> ProjectFile(Path("rankgauge.toml"), tomllib.loads(text), text).where("retrievers", "dense", "encoder")
            'rankgauge.toml, line 2, retrievers.dense.encoder'
        """
        line = self.line(*keys)
        name = ".".join(f'"{key}"' if "." in key else key for key in (*self.keys, *keys))
        return ", ".join(filter(None, (str(self.path), f"line {line}" if line else "", name)))

    def line(self, *keys: str) -> int:
        """Return the line of a key, or of the table that lacks it, from 1; 0 if the file has neither.

        The numbers of list items begin at 1.
        """
        keys = (*self.keys, *keys)
        while keys and _inside(self.data, keys) is None:
            keys = keys[:-1]
        if not keys:
            return 0
        lines = self.text.replace("\r\n", "\n").split("\n")

        def reaches(end: int) -> bool:
            while True:
                try:
                    return _inside(tomllib.loads("\n".join(lines[:end])), keys) is not None
                except ValueError:  # a value of several lines cannot be parsed before its end
                    end += 1

        return bisect_left(range(len(lines)), 1, key=reaches) if self.text else 0

    def error(self, what: str, *keys: str, fix: str) -> FormatError:
        """Return an error about a key, with its location."""
        error = FormatError(what, path=str(self.path), line=self.line(*keys), fix=fix)
        error.where = self.where(*keys)
        return error

    @contextmanager
    def at(self, *keys: str) -> Iterator[None]:
        """Add the location of a key to errors that lack it."""
        try:
            yield
        except RankgaugeError as error:
            if str(self.path) not in error.where:
                error.where = ": ".join(filter(None, (self.where(*keys), error.where)))
            raise

    def check_owner(self) -> None:
        """Raise an error if the file belongs to another user.

        The file chooses the code to run, and the servers to which passwords and keys are sent.

        Raises:
            InputError: If it does.
        """
        if hasattr(os, "geteuid") and self.path.stat().st_uid != os.geteuid():
            raise InputError(
                "this file belongs to another user, and chooses the code to run and the servers to call",
                where=str(self.path),
                fix="read it; if you trust it, copy it, or run its retrievers with --trust (trust=True)",
            )

    def _refuse_secrets(self) -> None:
        from rankgauge.core.redaction import looks_secret

        values: list[tuple[tuple[str, ...], Any]] = [((), self.data)]
        while values:
            keys, value = values.pop()
            if len(keys) > _DEEPEST:
                raise self.error("the tables are nested too deeply", *keys[:1], fix="remove tables")
            if isinstance(value, list):
                value = {str(number): item for number, item in enumerate(value, 1)}
            if isinstance(value, Mapping):
                values += [((*keys, key), inner) for key, inner in value.items()]
            elif isinstance(value, str) and looks_secret(f'{keys[-1]} = "{value}"'):
                raise self.error(
                    "this looks like a password or a key, which a project file must not contain",
                    *keys,
                    fix="keep it in the environment (PGPASSWORD)"
                    if keys == ("store",)
                    else 'remove it, and name its environment variable: key_env = "NAME"',
                )


def _parse(text: str, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        match = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", str(error))
        line, column = (int(match[1] or text.rstrip("\n").count("\n") + 1), int(match[2] or 0)) if match else (0, 0)
        reason = re.sub(r" [(]at .*", "", str(error))
        what, fix = f"not valid TOML: {reason}", 'fix this line; names with signs need quotes: "nDCG@10" = 1'
        if reason.startswith("Cannot"):
            what, fix = f"duplicate key or table ({reason})", "remove one of the two"
        raise FormatError(what, path=path, line=line, column=column, fix=fix) from None


def _inside(value: Any, keys: Iterable[str]) -> Any:
    """Return the value of nested keys; None if there is none."""
    for key in keys:
        if isinstance(value, list) and key.isdecimal():
            value = dict(enumerate(value, 1)).get(int(key))
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value
