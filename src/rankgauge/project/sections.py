"""The tables of a project file that several surfaces read: answers, judging, and language models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankgauge.core.project_file import ProjectFile
from rankgauge.judging.events import Settings

_JUDGING = {
    **dict.fromkeys(("title", "mode", "image", "link"), (str,)),
    **dict.fromkeys(("shown", "places", "judges", "budget"), (int,)),
    **dict.fromkeys(("grades", "fields"), (list,)),
}
_ANSWERS = dict.fromkeys(("file", "reference", "collection", "model"), (str,))
_MODEL = {
    **dict.fromkeys(("url", "model", "key_env", "cache"), (str,)),
    **dict.fromkeys(("input_price", "output_price", "max_cost"), (float,)),
}


def judging_settings(file: ProjectFile, given: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings with which judging begins: those given, those in ``[judging]``, or the defaults.

    Raises:
        InputError: If a value is invalid.
        UnknownName: For an unknown key.
    """
    judging = file.inside("judging")
    with judging.at():
        return Settings(**{**judging.checked("judging", _JUDGING), **(given or {})})


def answer_settings(file: ProjectFile) -> dict[str, str]:
    """Return defaults of the arguments of ``rankgauge answers``: those in ``[answers]``, with paths.

    Raises:
        FormatError: If a value is not text.
        UnknownName: For an unknown key.
    """
    answers = file.inside("answers").checked("answers", _ANSWERS)
    return {key: value if key == "model" else str(file.path.parent / value) for key, value in answers.items()}


def model_settings(file: ProjectFile, name: str) -> dict[str, Any]:
    """Return arguments of :class:`rankgauge.llm.ChatModel`: those in ``[models.NAME]``.

    Raises:
        FormatError: If the table is missing or incomplete, or a value has the wrong type.
        InputError: If the file belongs to another user.
        UnknownName: For an unknown key.
    """
    file.check_owner()  # the key is sent to the address
    entry = file.inside("models", name)
    model = entry.checked("a model", _MODEL)
    for key in ("url", "model"):
        if key not in model:
            raise entry.error(
                f"{key} is missing", fix=f'write [models.{name}] with url = "https://..." and model = "..."'
            )
    return model | ({"cache": str(file.folder / model["cache"])} if "cache" in model else {})
