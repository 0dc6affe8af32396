"""The documentation agrees with the code, and is complete."""

import dataclasses
import functools
import importlib
import inspect
import json
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from docs_scripts import DOCS, docs_script
from page_tables import fill_sessions
from schemas import NAMES, published

import rankgauge
from rankgauge.benchmark import plan as planning, plan_execution
from rankgauge.cli.main import cli
from rankgauge.core import project_file
from rankgauge.measures.translation import DIALECTS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"

# Pages with exactly compared sessions, besides the README: those for new users.
EXACT = (
    "tutorial/measure-rag.md",
    "tutorial/first-evaluation.md",
    "howto/compare-runs.md",
    "howto/diagnose.md",
    "howto/gate-in-ci.md",
)

consoles = docs_script("consoles")
gallery = docs_script("gallery")
notebooks = docs_script("notebooks")
generated = docs_script("measures", "_ext")
checks = docs_script("checks")
definitions = docs_script("definitions")
formats = docs_script("formats")
names = docs_script("names")
wrong = docs_script("wrong_numbers")
different = docs_script("different_numbers")


def text(*path: str) -> str:
    return DOCS.joinpath(*path).read_text(encoding="utf-8")


def written() -> dict[str, Path]:
    """Return the handwritten pages by their name in Sphinx."""
    return {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in DOCS.rglob("*.md")}


def named_in_toctrees(page: str, names: set[str]) -> set[str]:
    found = set()
    folder = Path(page).parent
    for tree in re.findall(r"(?ms)^```\{toctree\}\n(.*?)^```", page_text(page)):
        for line in tree.splitlines():
            if line and not line.startswith(":"):
                found |= {name for name in names if Path(name).match((folder / line).as_posix())}
    return found


def page_text(page: str) -> str:
    made = {f"reference/measures/{name}": body for name, body in generated.pages().items()}
    return made[page] if page in made else text(f"{page}.md")


# ---- measures


def test_every_measure_has_a_page():
    pages = generated.pages()
    names = {measure.name for measure in rankgauge.list_measures()}
    assert len(names) >= 26
    assert set(pages) == {"index", *names}


@pytest.mark.parametrize("measure", rankgauge.list_measures(), ids=str)
def test_the_page_of_a_measure_says_all_that_its_declaration_says(measure):
    page, declared = generated.pages()[measure.name], measure.declaration
    for label in ("When to use it\n: ", "Limitations\n: ", "Source\n: "):
        assert label in page
    assert not re.search(r"(?m)^(Use|Beware|Source): ", page)
    assert ("$$" in page) == ("$$" in declared.doc)
    for word in declared.words:
        assert f"| `{word}` |" in page
    for twin in declared.trec:
        assert re.sub(r":[^}]*", "", twin) in page
    for other in declared.also:
        assert f"`{other}`" in page


@pytest.mark.parametrize("measure", rankgauge.list_measures(), ids=str)
def test_every_value_on_the_page_of_a_measure_can_be_had_by_the_name_beside_it(measure):
    rows = re.findall(r"(?m)^\| `(.+)` \| (-?[\d.]+) \| ", generated.pages()[measure.name])
    assert rows
    for name, shown in rows:
        means = rankgauge.evaluate(generated.judgments(measure), generated.RUN, name).mean()
        assert list(means.values()) == [pytest.approx(float(shown), abs=5e-5)]


def test_the_overview_has_every_measure_and_every_parameter():
    page = generated.overview()
    for measure in rankgauge.list_measures():
        assert f"({measure.name}.markdown)" in page
        for word in measure.declaration.words:
            assert f"| `{word}` |" in page


@pytest.mark.parametrize("name", definitions.PAGES)
def test_a_page_has_the_definitions_that_the_code_declares(name):
    page = definitions.PAGES[name].read_text(encoding="utf-8")
    table = page.partition(definitions.BEGIN.format(name))[2].partition(definitions.END)[0]
    assert table.strip() == "\n".join(definitions.lines(name)).strip()


# ---- command line and names


def commands(group: click.Command, path: str = "rankgauge"):
    yield path, group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            yield from commands(group.get_command(context, name), f"{path} {name}")


@pytest.mark.parametrize(("path", "command"), list(commands(cli)), ids=str)
def test_every_command_and_option_is_on_the_page_of_the_command_line(path, command):
    page = text("reference", "cli.md")
    assert f"## {path}\n" in page
    assert f"$ {path} --help\n" in page
    for parameter in command.params:
        shown = isinstance(parameter, click.Option) and not parameter.hidden
        names = parameter.opts if shown else []
        for name in names:
            assert name in page


@pytest.mark.parametrize("path", [README, *written().values()], ids=lambda p: p.stem)
def test_the_commands_and_calls_that_a_page_names_exist(path):
    page = re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))
    known = dict(commands(cli))
    for span in re.findall(r"`(rankgauge\s[^`]+)`", page):
        words = span.split()
        command = next(known[name] for n in range(len(words), 0, -1) if (name := " ".join(words[:n])) in known)
        assert not isinstance(command, click.Group) or words[-1] == "--help" or " ".join(words) in known, span
        options = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options | {"--help"}, span
    for name in re.findall(r"`(rankgauge\.[\w.]+)\(", page):
        assert callable(pkgutil.resolve_name(name))


def test_every_command_is_on_the_map_with_the_arguments_that_it_needs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rankgauge.toml").write_text('collection = "."\nlog = "log"\n')
    lines = re.findall(r"`rankgauge ([^`]+)`", text("map.md"))
    assert set(cli.commands) - {line.split()[0] for line in lines} == set()
    for line in lines:
        command, words = cli, line.split()
        while isinstance(command, click.Group):
            command = command.get_command(click.Context(command), words.pop(0))
        command.make_context(line, words)


def test_the_glossary_gives_measures_their_names():
    table = text("reference", "words.md").partition("\n## Terms\n")[0]
    online = {metric.name for metric in rankgauge.production.METRICS.values()}
    for cell in re.findall(r"(?m)^\| [^|]+ \| ([^|]+) \|", table):
        for name in set(re.findall(r"`(.+?)`", cell)) - online:
            assert rankgauge.parse(name.replace("@k", "@10"))


def test_every_public_name_is_on_the_page_of_python():
    page = text("reference", "api.md")
    kinds = ("", "verdicts", "answers")
    measures = {measure.name for kind in kinds for measure in rankgauge.list_measures(kind)}
    shown = set(re.findall(r"(?m)^\.\. (?:auto\w+|py:data):: (?:rankgauge\.)?([\w.]+)$", page))
    assert set(rankgauge.__all__) - measures - shown == set()
    packages = {path.parent.name for path in Path(rankgauge.__file__).parent.glob("*/__init__.py")}
    for package in packages - {"cli", "stats"}:
        names = set(getattr(importlib.import_module(f"rankgauge.{package}"), "__all__", ()))
        hidden = [n for n in names - measures if not {n, f"{package}.{n}"} & shown]
        assert not hidden, package


def test_every_error_is_on_the_page_of_errors():
    page = text("reference", "errors.md")
    for name in rankgauge.__all__:
        value = getattr(rankgauge, name)
        if isinstance(value, type) and issubclass(value, rankgauge.RankgaugeError):
            assert name in page


def test_every_use_case_is_on_its_page_with_its_measures():
    page = text("howto", "choose-measures.md")
    for name, case in rankgauge.core.USE_CASES.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}`"))
        for measure in case.measures:
            assert f"`{measure}`" in row


def test_every_key_of_the_result_file_is_on_its_page():
    page = text("reference", "result-file.md")
    schema = published("evaluation-1")
    assert set(re.findall(r"(?m)^(\w+): ", page)) >= set(schema["required"])
    for key in [*schema["properties"], *schema["properties"]["policies"]["properties"]]:
        assert f"`{key}`" in page or f'"{key}"' in page


def test_every_key_of_the_schema_of_benchmarks_is_on_the_page_of_files():
    page = text("reference", "result-file.md")
    part = page.split("\n## The benchmark file\n")[1].split("\n## ")[0]
    for keys in required(published("benchmark-1")):
        for key in keys:
            assert f"`{key}`" in part


def required(schema):
    """Return the keys that a schema requires, at any depth."""
    if isinstance(schema, dict):
        yield from ([schema["required"]] if isinstance(schema.get("required"), list) else [])
        for inner in schema.values():
            yield from required(inner)


def test_every_key_of_the_schema_of_checks_is_on_the_page_of_files():
    part = text("reference", "result-file.md").split("\n## The check file\n")[1].split("\n## ")[0]
    for keys in required(published("check-1")):
        for key in keys:
            assert f"`{key}`" in part or key in {"code", "name", "level", "what", "mend", "fix"}


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("diagnosis-1", "The diagnosis file"),
        ("drift-1", "The drift report"),
        ("answer-diagnosis-1", "The diagnosis file of answers"),
        ("calibration-2", "The calibration file"),
    ],
)
def test_the_keys_of_a_schema_are_in_the_section_of_its_file(name, title):
    part = text("reference", "result-file.md").split(f"\n## {title}\n")[1].split("\n## ")[0]
    schema = published(name)
    keys = schema["properties"].keys() - {"schema", "rankgauge"}
    if name == "calibration-2":
        keys |= schema["properties"]["relations"]["items"]["properties"].keys()
    assert {key for key in keys if f"`{key}`" not in part} == set()


def test_every_schema_is_on_the_page_of_files():
    page = text("reference", "result-file.md")
    assert [name for name in NAMES if f"`schemas/{name}.json`" not in page] == []


def test_every_kind_of_problem_is_on_its_page_in_full():
    page = text("reference", "checks.md")
    assert page.endswith(f"{checks.BEGIN}\n" + "\n".join(checks.lines()))
    for kind in rankgauge.checks.FINDING_KINDS.values():
        assert f"\n### {kind.code} {kind.name}\n" in page


def test_every_name_of_another_tool_is_on_its_page():
    page = text("reference", "names.md")
    assert page.endswith(f"{names.BEGIN}\n" + "\n".join(names.lines()))
    for dialect in DIALECTS:
        assert f"`{dialect}`" in page


def test_codes_that_the_pages_name_are_codes():
    # The example of this page is not a check.
    pages = [path for name, path in written().items() if name != "contributing/add-a-check"]
    for path in [README, *pages]:
        found = set(re.findall(r"\b[FJRPMT]1\d\d\b", path.read_text(encoding="utf-8")))
        # This page adds a code.
        new = {"R111"} if path.name == "add-a-check.md" else set()
        assert found - new <= set(rankgauge.checks.FINDING_KINDS), path


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the sessions are those of a POSIX shell")
def test_the_page_of_wrong_numbers_has_what_its_script_prints(data_folder, monkeypatch):
    monkeypatch.setenv("RANKGAUGE_TEST_DATA", str(data_folder))
    page = text("howto", "wrong-numbers.md")
    assert page.count("<!-- session: ") == len(wrong.SESSIONS)
    assert fill_sessions(page, wrong.sessions()) == page


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the sessions are those of a POSIX shell")
def test_the_page_of_different_numbers_has_what_its_script_prints(data_folder, monkeypatch):
    monkeypatch.setenv("RANKGAUGE_TEST_DATA", str(data_folder))
    page = text("howto", "why-is-my-number-different.md")
    assert page.count("<!-- session: ") == len(different.SESSIONS)
    assert fill_sessions(page, different.sessions()) == page


# ---- the project file


def test_the_types_of_retrievers_are_on_the_page_of_the_project_file_with_all_their_options():
    page, types = text("reference", "project-file.md"), docs_script("plan_types")
    assert "\n".join(types.lines()) in page
    for word, name in rankgauge.retrievers.TYPES.items():
        part = page.split(f"\n#### {word}\n")[1].split("\n#")[0]
        assert f"`{name}`" in part
        options = inspect.signature(getattr(rankgauge.retrievers, name)).parameters
        assert re.findall(r"(?m)^\| `(\w+)` \| .+ \| .+ \|$", part) == list(options)


def test_every_included_retriever_is_on_a_page_with_an_example():
    pages = [text("howto", f"{name}.md") for name in ("retrievers", "adapters", "vector-stores")]
    shown = "".join([*pages, text("howto", "configurations.md")])
    for name in rankgauge.retrievers.TYPES.values():
        assert re.search(rf"`{name}[(`]", shown), name


def keys_on(page: str, title: str) -> dict[str, str]:
    """Return the keys in the table under a heading, with their defaults."""
    part = page.split(f"# {title}\n")[1].split("\n#", maxsplit=1)[0]
    rows = re.findall(r"(?m)^\| (`.+?`(?:, `\w+`)*) \| (.*?) \|", part)
    return {key: said for names, said in rows for key in re.findall(r"`(\w+)`", names)}


def test_every_key_of_the_project_file_is_on_its_page_with_its_default():
    page = text("reference", "project-file.md")
    plan = keys_on(page, "Keys")
    tables = {key for key, kinds in project_file._KEYS.items() if kinds == (dict,)}  # noqa: SLF001 - no other list
    assert set(plan) | tables == set(project_file._KEYS)  # noqa: SLF001 - no other list has them
    assert all(f"\n## {table}\n" in page for table in tables)
    assert keys_on(page, "gate")["max_failed"] == f"`{rankgauge.GateRules.of().max_failed}`"
    for key in ("k", "timed"):
        assert plan[key] == f"`{getattr(rankgauge.BenchmarkPlan, key)}`"
    assert set(keys_on(page, "collection")) == set(planning._COLLECTION)  # noqa: SLF001 - no other list has them
    assert set(keys_on(page, "retrievers")) == set(planning._PLAN_KEYS)  # noqa: SLF001 - no other list has them
    limits = keys_on(page, "limits")
    assert set(limits) == {one.name for one in dataclasses.fields(rankgauge.Limits)}
    for key, value in dataclasses.asdict(rankgauge.Limits()).items():
        assert value is None or limits[key] == f"`{value}`"
    found = keys_on(page, "explore")
    assert set(found) == set(plan_execution._EXPLORE_KEYS)  # noqa: SLF001 - no other list has them
    for key, parameter in inspect.signature(rankgauge.explore).parameters.items():
        if key in found and parameter.default not in {None, parameter.empty, "nDCG@10"}:
            assert found[key] == f"`{parameter.default}`"


def test_the_project_on_its_page_can_be_run(tmp_path):
    first, _, mine, space, gate, bands, alerts, models = re.findall(
        r"(?ms)^```toml\n(.*?)^```", text("reference", "project-file.md")
    )
    shutil.copytree(rankgauge.sample_path("qrels.txt").parent, tmp_path / "sample")
    path = tmp_path / "rankgauge.toml"
    path.write_text(f"timed = 0\n{first}\n{space}", encoding="utf-8")
    plan = rankgauge.BenchmarkPlan.read(path)
    outcome = rankgauge.benchmark.run_plan(plan, progress=False)
    assert list(outcome.bench.runs) == ["bm25", "hashing", "hybrid", "passages"]
    assert not outcome.failed
    build = planning.PlanBuilder(plan, outcome.bench).named
    assert build("passages").settings["retriever"]["stemmer"] is None
    today = plan.options("passages")
    for option, values in plan.file.data["explore"]["space"].items():
        value = functools.reduce(lambda table, key: table[key], option.split("."), today)
        assert value in values
    path.write_text("\n".join([first.split("[gate")[0], mine, gate, bands, alerts, models]), encoding="utf-8")
    assert len(rankgauge.BenchmarkPlan.read(path).retrievers) == 6
    assert len(rankgauge.GateRules.of(path).contracts) == 1
    assert str(rankgauge.diagnosis.Bands.of(path).bands[0].measure) == "P@5"
    assert len(rankgauge.project.alert_thresholds(rankgauge.core.ProjectFile.read(path))) == 2


# ---- pages


def test_the_configuration_files_of_the_pages_can_be_read():
    yaml = pytest.importorskip("yaml")
    readers = {"yaml": yaml.safe_load, "toml": tomllib.loads}
    read = []
    for page in written():
        for language, block in re.findall(r"(?ms)^```(yaml|toml)\n(.*?)^```", text(f"{page}.md")):
            assert readers[language](block), page
            read.append(language)
    assert set(read) == set(readers)


def test_the_copy_button_copies_what_was_typed_and_no_output():
    (prompt,) = re.findall(r'(?m)^copybutton_prompt_text = r"(.+)"$', text("conf.py"))
    for path in [README, *written().values()]:
        page = path.read_text(encoding="utf-8")
        for block in re.findall(r"(?ms)^```(?:console|shell-session)\n(.*?)^```$", page):
            typed = "".join(re.findall(r"(?m)^\$ .*\n(?:> .*\n)*", block))
            assert "".join(re.findall(rf"(?m)^(?:{prompt}).*\n", block)) == typed, path
        for block in re.findall(r"(?ms)^```(?:text|sh)\n(.*?)^```$", page):
            assert not re.search(r"(?m)^(\$|>>>) ", block), path


def test_every_page_can_be_reached():
    names = set(written()) | {f"reference/measures/{name}" for name in generated.pages()}
    reached, todo = {"index"}, ["index"]
    while todo:
        new = named_in_toctrees(todo.pop(), names) - reached
        reached |= new
        todo += new
    assert reached == names


@pytest.mark.parametrize(
    "path", [README, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md", *written().values()], ids=lambda p: p.stem
)
def test_every_link_to_a_file_leads_to_one(path):
    made = {f"{name}.markdown" for name in generated.pages()}
    for link in re.findall(r"\]\(([^)#:\s]+)[)#]", path.read_text(encoding="utf-8")):
        target = (path.parent / link).resolve()
        here = target.parent == DOCS / "reference" / "measures" and target.name in made
        assert here or target.exists(), link


def as_pinned(*libraries: str) -> bool:
    pins = re.findall(r"(?m)^([\w-]+)==([\w.]+)", (ROOT / "constraints.txt").read_text())
    return all(version(library) == dict(pins)[library] for library in libraries)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the sessions are those of a POSIX shell")
@pytest.mark.skipif(
    not as_pinned("bm25s", "click", "numpy", "pystemmer"), reason="other versions lay text out otherwise"
)
@pytest.mark.parametrize("path", [README, *(DOCS / page for page in EXACT)], ids=lambda p: p.stem)
def test_a_shell_session_prints_what_the_page_says(path):
    page = path.read_text(encoding="utf-8")
    assert consoles.run_again(page) == page


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the sessions are those of a POSIX shell")
@pytest.mark.parametrize("path", consoles.pages(), ids=lambda p: p.stem)
def test_the_commands_of_a_shell_session_end_as_the_page_says(path):
    page = path.read_text(encoding="utf-8")
    if path != README and path.relative_to(DOCS).as_posix() not in EXACT:
        assert consoles.exit_codes(consoles.run_again(page)) == consoles.exit_codes(page)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "page", "sections"),
    [("cranfield.py", "cranfield.md", 3), ("bm25_dense_hybrid.py", "bm25-dense-hybrid.md", 2)],
)
def test_a_page_about_collections_has_what_its_script_prints(data_folder, script, page, sections):
    done = subprocess.run(
        [sys.executable, DOCS / "_scripts" / script],
        capture_output=True,
        check=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1", "RANKGAUGE_TEST_DATA": str(data_folder)},
    )
    assert done.stdout in text("explain", page)
    assert f"\n{done.stdout}".count("\n## ") == sections


# ---- the tutorials


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted((DOCS / "tutorial").glob("*.md")), ids=lambda p: p.stem)
def test_a_tutorial_and_its_notebook_show_what_their_code_prints(page):
    for path, updated in notebooks.updated(page).items():
        assert path.read_text(encoding="utf-8") == updated, path


def test_a_notebook_has_the_code_the_files_and_the_output_of_its_page(tmp_path):
    page = "# T\n\n```toml\n# file: a.txt\none\n```\n\n```python\nprint(open('a.txt').read())\n```\n"
    outputs = notebooks.run(page, str(tmp_path))
    assert outputs == ["", "one\n\n"]
    assert notebooks.with_output(page, outputs) == f"{page}\n```text\none\n\n```\n"
    made = json.loads(notebooks.notebook(page, outputs))
    assert [cell["cell_type"] for cell in made["cells"]] == ["markdown", "code", "code"]
    assert "".join(made["cells"][1]["source"]) == "%%writefile a.txt\none"
    assert "".join(made["cells"][2]["outputs"][0]["text"]) == "one\n\n"


def test_the_gallery_shows_every_kind_of_plot_with_its_numbers():
    page = text("gallery.md")
    assert gallery.with_alternative_texts(page, gallery.plots()) == page
    for kind in rankgauge.rendering.PLOTS:
        assert f"](_static/plot-{kind}.svg)" in page


# ---- the README


def test_the_numbers_of_the_readme_are_those_of_the_package():
    page = README.read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 80
    assert len(rankgauge.list_measures()) > int(re.search(r"\[more than (\d+) measures\]", page)[1])
    assert f"our {len(rankgauge.retrievers.FUSION_METHODS)}," in text("explain", "other-tools.md")


def test_the_two_commands_of_the_readme_are_targets_of_the_makefile():
    targets = re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"))
    block = README.read_text(encoding="utf-8").split("## Develop")[1].split("```")[1]
    found = re.findall(r"(?m)^make ([a-z-]+)", block)
    assert found == ["demo", "test"]
    assert set(found) <= set(targets)


@pytest.mark.slow
def test_the_demo_fits_a_screen_and_ends_with_the_next_step(tmp_path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"(?m)^demo:.*\n((?:\t.*\n)+)", makefile)[1]
    commands = [line.split()[1:] for line in recipe.splitlines() if "bin/rankgauge " in line]
    assert [words[0] for words in commands] == ["init", "bench", "status"]
    (tmp_path / "build/demo").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.txt"):
        shutil.copy(rankgauge.sample_path(name), tmp_path / "build/demo")
    printed = "".join(consoles.printed(shlex.join(["rankgauge", *words]), tmp_path) for words in commands)
    lines = printed.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    for part in ("30 queries, 66 documents", "use-multilingual is better than bm25 by nDCG@10", "--full"):
        assert part in " ".join(printed.split())
    assert lines[-1].startswith("• next step: ")


def test_the_table_of_formats_is_what_the_registry_declares():
    page = text("reference", "formats.md")
    table = page.partition(formats.BEGIN)[2].partition(formats.END)[0]
    assert table.strip() == "\n".join(formats.lines()).strip()
