"""The public API: its names, their modules, and the modules that importing it loads."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import rankgauge

GOLDEN = Path(__file__).parent / "golden" / "public_names.txt"
SOURCE = Path(rankgauge.__file__).parent
PACKAGES = sorted(m.name for m in pkgutil.iter_modules(rankgauge.__path__) if m.ispkg)


def test_public_names_are_those_of_the_snapshot():
    """A lost name is a breaking change, a new one a feature: update the snapshot deliberately."""
    assert sorted(rankgauge.__all__) == GOLDEN.read_text(encoding="utf-8").split()


@pytest.mark.parametrize("name", sorted(rankgauge.__all__))
def test_every_public_name_is_there_and_documented(name):
    value = getattr(rankgauge, name)
    assert value is not None
    if callable(value) and not isinstance(value, rankgauge.Measure):
        assert value.__doc__, f"{name} has no docstring"


def test_the_names_that_people_type_are_few():
    measures = {measure.name for measure in rankgauge.list_measures()}
    assert len(set(rankgauge.__all__) - measures) <= 61  # with __version__


def test_every_measure_of_the_catalogue_is_a_name_of_measures():
    for measure in rankgauge.list_measures():
        assert getattr(rankgauge.measures, measure.name) == measure
        assert measure.name in rankgauge.measures.__all__
        assert getattr(rankgauge, measure.name, measure) == measure
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        rankgauge.measures.nope  # noqa: B018


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_of_a_package_is_there_and_documented(name):
    package = importlib.import_module(f"rankgauge.{name}")
    assert getattr(rankgauge, name) is package
    for word in getattr(package, "__all__", ()):
        value = getattr(package, word)
        if callable(value) and not isinstance(value, rankgauge.Measure):
            assert value.__doc__, f"{name}.{word} has no docstring"


@pytest.mark.parametrize("name", [name for name in PACKAGES if name != "cli"])
def test_a_package_has_no_module_of_the_name_of_a_function(name):
    """For type checkers, `from rankgauge.checks import check` would be a module."""
    names = set(getattr(importlib.import_module(f"rankgauge.{name}"), "__all__", ()))
    assert not names & {path.stem for path in (SOURCE / name).glob("*.py")}


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
    for heavy in ("pandas", "polars", "pyarrow", "duckdb", "narwhals", "click", "jinja2", "matplotlib"):
        assert heavy not in loaded


def test_a_function_is_not_hidden_by_a_module_of_its_name():
    """Importing any module of the package must not change the public names."""
    code = (
        "import pkgutil, importlib, rankgauge\n"
        "for m in pkgutil.walk_packages(rankgauge.__path__, 'rankgauge.'):\n"
        "    if not m.name.endswith('__main__'): importlib.import_module(m.name)\n"
        "assert callable(rankgauge.evaluate), rankgauge.evaluate\n"
        "assert callable(rankgauge.list_measures), rankgauge.list_measures\n"
        "import types\n"
        "bad = [n for n in rankgauge.__all__ if"
        " isinstance(getattr(rankgauge, n), types.ModuleType)]\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        rankgauge.nope  # noqa: B018


def test_dir_lists_the_public_names():
    assert {*rankgauge.__all__, "measures", "gates"} <= set(dir(rankgauge))
