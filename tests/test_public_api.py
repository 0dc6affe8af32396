"""The public face: its names, and what it costs to open."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rankgauge

GOLDEN = Path(__file__).parent / "golden" / "public_names.txt"
SOURCE = Path(rankgauge.__file__).parent


def test_public_names_are_those_of_the_snapshot():
    """A name that goes is a removal, one that comes is a feature: change the snapshot knowingly."""
    assert sorted(rankgauge.__all__) == GOLDEN.read_text(encoding="utf-8").split()


@pytest.mark.parametrize("name", sorted(rankgauge.__all__))
def test_every_public_name_is_there_and_documented(name):
    value = getattr(rankgauge, name)
    assert value is not None
    if callable(value) and not isinstance(value, rankgauge.Measure):
        assert value.__doc__, f"{name} has no docstring"


def test_every_measure_of_the_catalogue_is_a_public_name():
    names = {measure.name for measure in rankgauge.list_measures()}
    public = {
        name
        for name in rankgauge.__all__
        if isinstance(getattr(rankgauge, name), rankgauge.Measure)
    }
    assert public == names


def test_static_types_know_the_same_names():
    """The names under TYPE_CHECKING are what editors and mypy see."""
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {"__version__", "functional", "retrievers"}
    for node in block.body:
        if isinstance(node, ast.ImportFrom):
            seen |= {alias.asname for alias in node.names}
        elif isinstance(node, ast.AnnAssign):
            seen.add(node.target.id)
    assert seen == set(rankgauge.__all__)


def test_importing_it_loads_the_standard_library_only():
    code = (
        "import sys; before = set(sys.modules); import rankgauge; "
        "print(sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(done.stdout))
    assert loaded - sys.stdlib_module_names == {"rankgauge"}


def test_evaluating_mappings_loads_numpy_and_nothing_else():
    code = (
        "import sys, rankgauge; rankgauge.evaluate({'q': {'d'}}, {'q': ['d']}, 'RR');"
        "print(sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(done.stdout)) - sys.stdlib_module_names
    for heavy in (
        "pandas",
        "polars",
        "pyarrow",
        "duckdb",
        "narwhals",
        "rich",
        "click",
        "jinja2",
        "matplotlib",
    ):
        assert heavy not in loaded


def test_a_function_is_not_hidden_by_a_module_of_its_name():
    """Importing any module of the package must leave the public names as they are."""
    code = (
        "import pkgutil, importlib, rankgauge\n"
        "for m in pkgutil.walk_packages(rankgauge.__path__, 'rankgauge.'):\n"
        "    if not m.name.endswith('__main__'): importlib.import_module(m.name)\n"
        "assert callable(rankgauge.evaluate), rankgauge.evaluate\n"
        "assert callable(rankgauge.list_measures), rankgauge.list_measures\n"
        "import types\n"
        "bad = [n for n in rankgauge.__all__ if n not in ('functional', 'retrievers') and"
        " isinstance(getattr(rankgauge, n), types.ModuleType)]\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        rankgauge.nope  # noqa: B018


def test_dir_lists_the_public_names():
    assert dir(rankgauge) == sorted(rankgauge.__all__)
