"""Options declared in the signatures of commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner

from rankgauge.cli.main import cli
from rankgauge.cli.parameters import Command, Group, Positive, argument, command, declare, option


@dataclass(frozen=True)
class Corner:
    x: int = option("The column.", default=1)
    y: int = option("The row.", "-y, --row N", default=2)
    color: str = "black"


@command()
def draw(
    *,
    source: str,
    others: tuple[str, ...] = argument("[OTHER]..."),
    plain: bool = option("No colors."),
    wide: bool | None = option("Wide or narrow.", "--wide/--narrow"),
    style: Literal["dots", "lines"] = option("The style.", default="dots"),
    k: Positive | None = option("The depth.", "N"),
    share: Annotated[float, click.FloatRange(0, 1)] = option("A share.", "X", default=0.5),
    names: tuple[str, ...] = option("A name.", "--name NAME"),
    pair: tuple[str, str] | None = option("Two files.", "A B"),
    pairs: dict[str, str] = option("A setting.", "--set KEY=VALUE"),
    title: str = option("The title.", "TEXT"),
    label: str = option("A label.", default=""),
    corner: Corner = declare(y=option("The last row.", "-y, --row N", default=9), color="red"),
) -> None:
    """Draw."""
    known = (plain, wide, style, k, share, names, pair, pairs, title)
    assert not label
    click.echo(repr((source, others, *known, corner)))


def said(*words, code=0):
    done = CliRunner().invoke(draw, words)
    assert done.exit_code == code, done.output
    return done.output


def test_a_default_is_shown_unless_it_is_empty():
    shown = said("--help")
    assert shown.count("[default: dots]") == 1
    assert '""' not in shown


def test_a_declaration_gives_name_type_default_and_group():
    assert eval(said("a", "--title", "T")) == (
        "a",
        (),
        False,
        None,
        "dots",
        None,
        0.5,
        (),
        None,
        {},
        "T",
        Corner(1, 9, "red"),
    )
    words = "a b c --plain --narrow --style lines -k 3 --share 1 --name n --name m --pair p q"
    given = said(*words.split(), "--set", "a=b=c", "--title", "T", "-y", "7")
    assert eval(given) == (
        "a",
        ("b", "c"),
        True,
        False,
        "lines",
        3,
        1.0,
        ("n", "m"),
        ("p", "q"),
        {"a": "b=c"},
        "T",
        Corner(1, 7, "red"),
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("a", "Missing option '--title'"),
        ("--title T", "Missing argument 'SOURCE'"),
        ("a --title T -k 0", "0 is not in the range x>=1"),
        ("a --title T --style waves", "'waves' is not one of 'dots', 'lines'"),
        ("a --title T --set x", "got 'x', expected KEY=VALUE, each KEY once"),
        ("a --title T --set x=1 --set x=2", "got 'x=2', expected KEY=VALUE, each KEY once"),
    ],
)
def test_values_are_checked_by_their_type(words, message):
    assert message in said(*words.split(), code=2)


def test_the_help_shows_what_is_declared():
    shown = " ".join(said("--help").split())
    for text in (
        "SOURCE [OTHER]...",
        "--plain No colors.",
        "--wide / --narrow Wide or narrow.",
        "--style [dots|lines] The style. [default: dots]",
        "-k N The depth. [x>=1]",
        "--share X A share. [default: 0.5; 0<=x<=1]",
        "--title TEXT The title. [required]",
        "-x INTEGER The column. [default: 1]",
        "-y, --row N The last row. [default: 9]",
    ):
        assert text in shown


def test_a_group_lists_its_commands_in_the_order_of_definition():
    group = Group("group")
    for name in ("b", "a"):
        assert isinstance(group.command(name)(lambda: None), Command)
    assert group.list_commands(click.Context(group)) == ["b", "a"]


def commands(group):
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        yield from commands(found) if isinstance(found, click.Group) else [found]


def test_each_option_of_a_command_is_declared_once_and_has_help():
    for found in commands(cli):
        names = [name for p in found.params for name in {p.name, *p.opts}]
        assert len(set(names)) == len(names), found.name
        assert all(p.help for p in found.params if isinstance(p, click.Option)), found.name


def test_evaluate_has_few_options():
    evaluate = cli.get_command(click.Context(cli), "evaluate")
    assert sum(isinstance(parameter, click.Option) for parameter in evaluate.params) <= 24
