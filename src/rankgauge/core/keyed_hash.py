"""Keyed hash of values that must not be stored in plain text, such as headers.

The plain hash of a short secret can be guessed by trying all short texts. The hash is therefore
keyed with 32 random bytes from a file that only its owner can read: ``rankgauge/key`` in
``$XDG_STATE_HOME``, otherwise in ``~/.local/state`` (``%LOCALAPPDATA%`` on Windows).

If the key is lost, hashes change, and cached answers are requested again. The same holds for two
machines that share a store but not the key.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from rankgauge.core.files import create_privately

_BYTES = 32


def keyed_hash(value: Any) -> str:
    """Return the first 32 hexadecimal digits of the HMAC-SHA256 of a value as JSON."""
    text = json.dumps(value, sort_keys=True)
    folder = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA") or Path("~/.local/state").expanduser()
    return hmac.new(_key(Path(folder) / "rankgauge" / "key"), text.encode(), "sha256").hexdigest()[:32]


@cache
def _key(place: Path) -> bytes:
    """Read the key or create it; without a writable folder, make a key for this process."""
    try:
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Readable by its owner only; the first of several processes wins.
            with suppress(FileExistsError), create_privately(place) as part:
                part.write_bytes(secrets.token_bytes(_BYTES))
        key = place.read_bytes()
    except OSError:
        key = b""
    return key if len(key) >= _BYTES else secrets.token_bytes(_BYTES)
