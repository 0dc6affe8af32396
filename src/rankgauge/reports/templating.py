"""Templates of pages, and their assets."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from rankgauge.core.escaping import templates
from rankgauge.rendering.plot_drawing import Plot


def asset(name: str) -> str:
    """Return the text of a file from the templates folder."""
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """Return the hash with which the content security policy of a page allows its script."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def readable(value: Any) -> str:
    """Format a setting as text.

    Example:
        >>> readable({"name": "rules", "calibrated": [], "prompts": ["a", "b"]})
        'name: rules; prompts: a, b'
    """
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {readable(held)}" for name, held in value.items() if readable(held))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(readable, value))
    return "" if value is None else str(value)


def page(template: str, *, script: str = "", **values: Any) -> str:
    """Render a template with its values, style, script, and version."""
    return str(
        _environment()
        .get_template(template)
        .render(
            **values,
            version=metadata.version("rankgauge"),
            style=asset("page.css"),
            script=script,
            script_digest=_digest(script),
        )
    )


def _environment() -> Any:
    """Return the Jinja environment with tests for the parts of a section."""
    from jinja2 import FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def inlined(shown: Plot, name: str) -> Markup:
        return Markup(shown.inline(name))  # noqa: S704 - our own SVG, its texts escaped

    made = templates(
        loader=FileSystemLoader(Path(__file__).parent / "templates", encoding="utf-8"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals["inline"] = inlined
    made.globals["readable"] = readable
    made.globals["kind"] = lambda part: type(part).__name__
    return made
