"""Files of a log: manifest, segments, and refused rows, written by one import at a time."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rankgauge.core.files import write_atomically
from rankgauge.errors import InputError, StorageError
from rankgauge.production import translation
from rankgauge.production.log import MANIFEST, read_manifest
from rankgauge.production.sources import Refused

REFUSED = "refused.jsonl"
_SHOWN = 2000  # characters of a refused row that are kept


class LogFolder:
    """The folder of a log, with its manifest, segments, and refused rows.

    The manifest is written last and atomically. Segments missing from it are ignored, and the file
    of refused rows is truncated to the size that it records.
    """

    def __init__(self, folder: Path, written: Path, manifest: dict[str, Any]) -> None:
        self.folder, self._written, self.manifest = folder, written, manifest
        self._new: list[str] = []
        # Hashes of the stored refused rows, so that a second import does not add them again.
        self._refused: set[int] | None = None

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, settings: Mapping[str, Any], *, dry_run: bool) -> Iterator[LogFolder]:
        """Open a log exclusively for an import; in a dry run, write to a temporary folder."""
        if folder.exists() and not folder.is_dir():
            raise InputError("this is a file, expected the folder of a log", where=str(folder), fix="name a new folder")
        exists = (folder / MANIFEST).exists()
        if (
            not exists
            and folder.is_dir()
            and any(not each.name.startswith((".", "events-", REFUSED)) for each in folder.iterdir())
        ):
            raise InputError("this folder has other files and is not a log", where=str(folder), fix="name a new folder")
        with contextlib.ExitStack() as stack:
            stack.enter_context(_reported(folder))
            if not dry_run:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # contains texts of users
                stack.enter_context(_locked(folder))
            manifest: dict[str, Any] = (
                read_manifest(str(folder))
                if exists
                else {
                    "schema": "rankgauge log 1",
                    "settings": dict(settings),
                    "segments": [],
                    "first_ranks": {},
                    "refused_bytes": 0,
                    "unfinished": {},
                }
            )
            if manifest["settings"] != settings:
                raise InputError(
                    "this log was imported with other settings for personal data: "
                    + ", ".join(f"{k}={v}" for k, v in dict(manifest["settings"]).items()),
                    where=str(folder),
                    fix="use the same settings, or import into a new folder",
                )
            written = Path(stack.enter_context(tempfile.TemporaryDirectory())) if dry_run else folder
            store = cls(folder, written, manifest)
            if not dry_run:
                store.clean()
                if not exists:
                    store.commit()  # so that the log can be read if writing the first segment fails
            yield store

    def clean(self) -> None:
        """Remove the files of an interrupted import."""
        known = {each["file"] for each in self.manifest["segments"]}
        for path in self.folder.iterdir():
            if (path.name.startswith("events-") and path.name not in known) or path.suffix == ".part":
                path.unlink()
        refused = self.folder / REFUSED
        if refused.exists():
            os.truncate(refused, self.manifest["refused_bytes"])

    @property
    def files(self) -> list[str]:
        """Paths of the segments."""
        old = [str(self.folder / each["file"]) for each in self.manifest["segments"]]
        new = {str(self.folder / name) for name in self._new}
        return [str(self._written / Path(name).name) if name in new else name for name in old]

    def write(self, connection: Any, refused: Sequence[tuple[str, Refused]]) -> None:
        """Write the events of the table ``fresh`` as a segment, and append the refused rows."""
        [(count,)] = connection.execute("SELECT count(*) FROM fresh").fetchall()
        segments = self.manifest["segments"]
        if count:
            name = f"events-{len(segments) + 1:06}.parquet"
            part = self._written / f"{name}.part"
            target = str(part.absolute()).replace("'", "''")
            connection.execute(
                f"COPY (SELECT {translation.stored()} FROM fresh) TO '{target}'"
                " (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"
            )
            part.chmod(0o600)
            with part.open("rb") as stream:
                os.fsync(stream.fileno())
            part.replace(self._written / name)
            segments.append({"file": name, "events": count})
            self._new.append(name)
        if refused:
            keeps = not any(
                (
                    self.manifest["settings"]["personal"] != "keep",
                    self.manifest["settings"]["scrub"],
                    self.manifest["settings"]["drop_text"],
                )
            )
            path, opener = self._written / REFUSED, partial(os.open, mode=0o600)
            with open(path, "ab+", opener=opener) as stream:
                if self._refused is None:
                    stream.seek(0)
                    self._refused = {hash(line) for line in stream}
                for source, each in refused:
                    row = {"source": f"{source}:{each.line}", "reason": each.fault}
                    if keeps:
                        row["row"] = each.text[:_SHOWN]
                    line = json.dumps(row).encode() + b"\n"
                    if hash(line) not in self._refused:
                        self._refused.add(hash(line))
                        stream.write(line)
                stream.flush()
                os.fsync(stream.fileno())
                self.manifest["refused_bytes"] = stream.tell()

    def commit(self) -> None:
        """Write the manifest."""
        with write_atomically(self._written / MANIFEST) as stream:
            stream.write(json.dumps(self.manifest, indent=1).encode())


@contextmanager
def _reported(folder: Path) -> Iterator[None]:
    """Report errors of the file system, such as a full disk."""
    import duckdb

    try:
        yield
    except (OSError, duckdb.IOException, duckdb.OutOfMemoryException) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise StorageError(
            f"the log cannot be written: {reason:.200}",
            where=str(folder),
            fix="check its permissions and the free disk space, and repeat the import; events that "
            "were stored before are unchanged",
        ) from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the log against concurrent imports; the lock ends with the process."""
    with (folder / ".lock").open("ab") as stream:
        try:
            import fcntl
        except ImportError:
            yield
            return
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                "another import into this log is running", where=str(folder), fix="wait until it ends"
            ) from None
        yield
