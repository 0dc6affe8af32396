"""Options and arguments, declared once: in the signature of the function of a command.

A parameter without a default is an argument; a default made by `option` or `argument` declares the
rest: the type is in the annotation. A parameter whose type is a dataclass stands for the options
declared by the fields of the class; its default (`declare`) may declare some of
them anew.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from operator import itemgetter
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args, get_origin

import click

# At least 1, and at least 0.
Positive: TypeAlias = Annotated[int, click.IntRange(1)]
Count: TypeAlias = Annotated[int, click.IntRange(0)]


class _Declared(NamedTuple):
    names: tuple[str, ...]
    metavar: str
    text: str | None
    attributes: Mapping[str, Any]


def option(text: str, usage: str = "", **attributes: Any) -> Any:
    """Declare an option.

    Args:
        text: The help text.
        usage: Names and metavar, as in --help: ``-o, --output FILE``. The default name is that of
            the parameter.
        attributes: Further attributes of `click.Option`. Without a default, the option is required
            unless its type has None, is a bool (a flag), or is a tuple or a dict (the option may be
            repeated).
    """
    words = usage.split(" ")
    names = tuple(word.rstrip(",") for word in words if word.startswith("-"))
    return _Declared(names, " ".join(words[len(names) :]), text, attributes)


def argument(metavar: str, **attributes: Any) -> Any:
    """Declare an argument; it is optional if its metavar begins with a bracket."""
    return _Declared((), metavar, None, attributes)


def declare(**fields: Any) -> Any:
    """Declare some fields of a dataclass anew, or give their values."""
    return fields


def _pairs(_context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    """Return pairs such as KEY=VALUE as a mapping."""
    values: dict[str, str] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if not key or not value or key in values:
            form = str(parameter.metavar)
            raise click.BadParameter(f"got {pair!r:.80}, expected {form}, each {form.partition('=')[0]} once")
        values[key] = value
    return values


def _parameter(name: str, annotation: Any, declared: _Declared) -> click.Parameter:
    """Return the parameter of click."""
    attributes: dict[str, Any] = {"metavar": declared.metavar or None}
    optional = NoneType in get_args(annotation)
    kind = next(kind for kind in get_args(annotation) if kind) if optional else annotation
    if get_origin(kind) is tuple:
        kind, end = get_args(kind)
        count = {"nargs": 2} if end is not ... else {"multiple": True}
        attributes |= count if declared.text else {"nargs": -1}
    if get_origin(kind) is dict:
        kind, attributes["callback"], attributes["multiple"] = str, _pairs, True
    if get_origin(kind) is Literal:
        attributes["type"] = click.Choice(get_args(kind))
    else:
        attributes["type"] = kind.__metadata__[0] if get_origin(kind) is Annotated else kind
    if declared.text is None:
        attributes["required"] = not (optional or declared.metavar.startswith("["))
        return click.Argument([name], **{**attributes, **declared.attributes})
    shown = declared.attributes.get("default") != ""  # an empty text is described in the help, if at all
    attributes |= {"help": declared.text, "show_default": shown, **declared.attributes}
    if kind is bool:
        attributes |= {"type": None, "is_flag": True, "default": None if optional else False}
    elif "default" not in declared.attributes:
        attributes["required"] = not (optional or "multiple" in attributes)
    names = declared.names or (f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}",)
    return click.Option([*names, name], **attributes)


def _declarations(
    target: Callable[..., Any], anew: Mapping[str, Any]
) -> tuple[list[click.Parameter], Callable[[Mapping[str, Any]], Any]]:
    """Return the parameters that a function or a dataclass declares, and its call with values."""
    parameters: list[click.Parameter] = []
    fixed: dict[str, Any] = {}
    parts: dict[str, Callable[[Mapping[str, Any]], Any]] = {}
    for name, parameter in inspect.signature(target, eval_str=True).parameters.items():
        default = anew.get(name, parameter.default)
        has_default = default is not parameter.empty
        if isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation):
            group: Callable[..., Any] = parameter.annotation
            more, parts[name] = _declarations(group, default if has_default else {})
            parameters += more
        elif has_default and not isinstance(default, _Declared):
            fixed[name] = default
        else:
            declared = default if has_default else argument(name.upper())
            parameters.append(_parameter(name, parameter.annotation, declared))
            parts[name] = itemgetter(name)
    return parameters, lambda values: target(**fixed, **{name: part(values) for name, part in parts.items()})


def command(short_help: str = "", name: str | None = None) -> Callable[..., Command]:
    """Return a decorator that makes a command of a function."""
    return click.command(name, cls=Command, short_help=short_help)


class Command(click.Command):
    """Command whose parameters are declared by its function."""

    def __init__(self, name: str | None, *, callback: Callable[..., Any], **attributes: Any) -> None:
        attributes["params"], call = _declarations(callback, {})
        super().__init__(name, callback=lambda **values: call(values), **attributes)


class Group(click.Group):
    """Group of such commands, listed in the order of their definition."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return all commands, in the order in which they were added."""
        return list(self.commands)
