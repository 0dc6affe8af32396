"""Names that are imported when they are first used."""

import builtins
import compileall
import importlib
import sys
import threading

import pytest

PACKAGE = """
from rankgauge.core.lazy import lazy_imports

__all__ = ["EAGER"]
EAGER = 1

with lazy_imports(globals()):
    from lazy_package import below as below
    from lazy_package.below import first as first, renamed as renamed
    from json import dumps as dumps
"""
BELOW = """
print("below")
first, renamed = "first", "second"
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of compiled modules without their source, as in a frozen application."""
    folder = tmp_path / "lazy_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "below.py").write_text(BELOW)
    assert compileall.compile_dir(folder, quiet=1, legacy=True)
    for source in folder.glob("*.py"):
        source.unlink()
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("lazy_package")
    for name in ("lazy_package", "lazy_package.below"):
        sys.modules.pop(name, None)


def test_a_module_is_imported_when_a_name_of_it_is_used(package, capsys):
    assert package.__all__ == ["EAGER", "first", "renamed", "dumps"]
    assert dir(package) == ["EAGER", "below", "dumps", "first", "json", "renamed"]
    assert not vars(package).keys() & {"first", "below", "dumps"}
    assert "lazy_package.below" not in sys.modules
    assert (package.first, package.renamed, package.dumps(1)) == ("first", "second", "1")
    assert package.below is sys.modules["lazy_package.below"]
    assert capsys.readouterr().out == "below\n"
    with pytest.raises(AttributeError, match="'lazy_package' has no attribute 'nope'"):
        package.nope  # noqa: B018


def test_an_attribute_that_a_dependency_lacks_is_named(tmp_path, monkeypatch):
    (tmp_path / "lazy_fault.py").write_text(PACKAGE.replace("lazy_package", "lazy_below"))
    (tmp_path / "lazy_below.py").write_text("import json\nfirst = json.no_such_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    package = importlib.import_module("lazy_fault")
    with pytest.raises(ImportError, match=r"lazy_below.* cannot be imported: module 'json' has no attribute 'no_such"):
        package.first  # noqa: B018


def test_other_imports_are_not_affected():
    original = builtins.__import__
    from rankgauge.core.lazy import lazy_imports

    namespace, done = {"__name__": "other"}, []
    with lazy_imports(namespace):
        exec("from decimal import Decimal", namespace)
        import fractions

        thread = threading.Thread(target=lambda: done.append(__import__("colorsys")))
        thread.start()
        thread.join()
        inner = {"__name__": "inner", "lazy_imports": lazy_imports}
        exec("with lazy_imports(globals()):\n from json import loads", inner)
    assert builtins.__import__ is original
    assert (fractions.Fraction(1), done[0].__name__) == (1, "colorsys")
    assert (namespace["__all__"], inner["__all__"]) == (["Decimal"], ["loads"])
    assert inner["__getattr__"]("loads")("[1]") == [1]


def test_the_block_ends_with_an_error():
    original = builtins.__import__
    from rankgauge.core.lazy import lazy_imports

    with pytest.raises(ZeroDivisionError), lazy_imports({"__name__": "other"}):
        1 / 0  # noqa: B018
    assert builtins.__import__ is original
