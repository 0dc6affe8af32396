"""The recipe for conda, the container image, and the citation agree with pyproject.toml."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text(*path):
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


def test_the_recipe_has_the_version_and_the_dependencies():
    recipe = text("packaging", "conda", "recipe.yaml")
    assert f'version: "{PROJECT["version"]}"' in recipe
    wanted = [
        f"python {PROJECT['requires-python']}",
        *(re.sub("(?=>=)", " ", each) for each in PROJECT["dependencies"]),
    ]
    assert re.findall(r"    - (.*)", recipe[recipe.index("  run:") : recipe.index("tests:")]) == wanted


def test_the_image_installs_extras_that_exist_and_runs_without_root():
    recipe = text("packaging", "Containerfile")
    extras = re.search(r"ARG EXTRAS=(.*)", recipe)[1].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    assert "web" in extras
    assert re.findall(r"(?m)^USER (.*)", recipe) == ["10001"]
    for source in re.findall(r"(?m)^COPY (?!--from)(.*) \S+$", recipe):
        for name in source.split():
            assert f"!{name}\n" in text("packaging", "Containerfile.dockerignore")


def test_the_citation_has_the_version_and_the_license():
    citation = text("CITATION.cff")
    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert f"\nlicense: {PROJECT['license']}\n" in citation
