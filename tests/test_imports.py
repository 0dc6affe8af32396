"""Modules import only what import-linter sees, and never each other."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rankgauge

ROOT = Path(rankgauge.__file__).parent
FILES = {
    ".".join(("rankgauge", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
}


def nodes_of(tree):
    """Yield the nodes of code that runs when its module is used, not only its public names."""
    for node in ast.iter_child_nodes(tree):
        head = node.test if isinstance(node, ast.If) else None
        head = node.items[0] if isinstance(node, ast.With) else head
        text = "" if head is None else ast.unparse(head)
        if not text.startswith(("TYPE_CHECKING", "lazy_imports(")):
            yield node
            yield from nodes_of(node)


def imported(path):
    """Yield the names of modules in import statements, also within functions."""
    for node in nodes_of(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                full = f"{node.module}.{each.name}"
                yield full if full in FILES else node.module


def imported_by_name(path):
    """Yield what is known of the names that `import_module` gets."""
    text = path.read_text(encoding="utf-8")
    for node in nodes_of(ast.parse(text)) if "import_module" in text else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            first = node.args[0]
            first = first.values[0] if isinstance(first, ast.JoinedStr) else first
            if isinstance(first, ast.Constant):
                yield first.value


@pytest.mark.slow
def test_modules_do_not_import_each_other():
    graph = {
        module: {name for name in (*imported(path), *imported_by_name(path)) if name in FILES}
        for module, path in FILES.items()
    }
    assert len(graph) > 300
    assert "rankgauge.reports.registry" in graph["rankgauge"]
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_modules_are_imported_by_name_only_within_a_package():
    names = {(path, name) for path in FILES.values() for name in imported_by_name(path)}
    assert len(names) > 3
    for path, name in names:
        package = path.relative_to(ROOT).parts[0]
        assert not name.startswith("rankgauge.") or name.startswith(f"rankgauge.{package}."), path
