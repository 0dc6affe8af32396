"""The fingerprint of code changes with code and values, and only with them."""

import dataclasses
import datetime as dt
import enum
import functools
import importlib
import re
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from rankgauge import Run
from rankgauge.benchmark.code_hash import code_fingerprint, remember_arguments
from rankgauge.retrievers import BM25, Hybrid


def digest(value):
    return code_fingerprint(value).digest


@pytest.mark.parametrize(
    "other",
    [
        lambda text: ["d2"],
        lambda text: [text],
        lambda text: sorted(["d1"]),
        lambda text: sorted(["d1"], key=lambda name: text),
    ],
    ids=["another constant", "a name", "a call", "a function inside"],
)
def test_other_code_is_another_function(other):
    assert digest(lambda text: ["d1"]) != digest(other)


def test_constants_of_nested_functions_are_hashed():
    assert digest(lambda text: sorted(text, key=lambda name: name == "d1")) != digest(
        lambda text: sorted(text, key=lambda name: name == "d2")
    )


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Point:
    x: int


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


class Numbers(list):
    pass


class Text(str):
    __slots__ = ()


PAIRS = [
    (1, 2), (1, True), ("a", "b"), ("a", b"a"), (1.0, 1), ((1,), [1]), ({"a": 1}, {"a": 2}),
    ({1, 2}, {1, 3}), (Color.RED, Color.BLUE), (Point(1), Point(2)), (Slotted(1), Slotted(2)),
    (Numbers([1]), Numbers([2])), (Text("a"), Text("b")),
    (dt.date(2026, 1, 1), dt.date(2026, 1, 2)), (re.compile("a"), re.compile("b")),
    (np.array([1, 2]), np.array([1, 3])), (np.array([1, 2]), np.array([[1, 2]])),
    (np.float64(1), np.float64(2)), ([1].index, [2].index), (BM25(k1=1.0), BM25(k1=2.0)),
    (functools.partial(max, 1), functools.partial(max, 2)), (bytearray(b"a"), bytearray(b"b")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"), PAIRS, ids=[f"{n} {type(one).__name__}" for n, (one, _) in enumerate(PAIRS)]
)
def test_values_are_compared_by_content(one, other):
    def holding(value):
        return lambda text: value

    found = code_fingerprint(holding(one))
    assert found.opaque == ""
    assert found == code_fingerprint(holding(one))
    assert found != code_fingerprint(holding(other))


def test_parts_that_declare_settings_are_compared_by_these():
    def find(text):
        return []

    one, other = (Hybrid([find, BM25(k1=k1)]) for k1 in (1.0, 1.2))
    assert digest(one) == digest(Hybrid([find, BM25(k1=1.0)])) != digest(other)
    assert code_fingerprint(one).opaque == ""


def test_incomparable_values_equal_only_themselves():
    class Holds:
        def __init__(self):
            self.inside = threading.local()

    one = Holds()
    assert digest(one) == digest(one) != digest(Holds())
    assert code_fingerprint(one).opaque == "_thread._local"


def test_runs_are_hashed_by_content():
    def holding(run):
        return lambda text: run[text]

    one, other = (Run.of({"q": [name]}) for name in ("d1", "d2"))
    assert digest(holding(one)) != digest(holding(other))


def test_locks_are_ignored():
    class Locked:
        def __init__(self):
            self.lock = threading.Lock()

    assert digest(Locked()) == digest(Locked())


@pytest.mark.slow
def test_recursive_and_large_values_are_hashed_in_finite_time():
    loop = []
    loop.append(loop)
    assert code_fingerprint(lambda text: loop).opaque == ""
    large = [[n] for n in range(300_000)]
    assert code_fingerprint(lambda text: large).opaque == "more than 200,000 values"

    class Refuses:
        @property
        def __class__(self):
            raise RuntimeError("no")

        def __call__(self, text):
            return []

    assert code_fingerprint(Refuses()).opaque


def test_the_arguments_of_a_plan_count():
    made = [lambda text: [], lambda text: []]
    remember_arguments(made[0], {"mode": 1})
    with_one = digest(made[0])
    remember_arguments(made[0], {"mode": 2})
    assert digest(made[0]) != with_one


@pytest.mark.slow
def test_the_fingerprint_is_the_same_in_every_process(tmp_path):
    code = """
        import helpers
        from rankgauge.benchmark.code_hash import code_fingerprint

        WORDS = {"the", "of", "and", "a"}

        class Mine:
            words = frozenset("abc")
            def __init__(self):
                self.names = {"a", "b", "c"}
            def __call__(self, text):
                import math
                return [w for w in WORDS if w in {"x", "y", "z"}] + helpers.more(text, math.pi)

        print(*code_fingerprint(Mine()))
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(code))

    def printed():
        done = subprocess.run(
            [sys.executable, "-B", "program.py"], capture_output=True, text=True, check=True,
            timeout=60, cwd=tmp_path,
        )  # fmt: skip
        return done.stdout

    seen = []
    for name in ("helpers", "deeper"):
        (tmp_path / f"{name}.py").write_text("import deeper\n" if name == "helpers" else "")
    for name in ("helpers", "deeper"):
        seen.append(printed())
        assert seen[-1] == printed()
        with (tmp_path / f"{name}.py").open("a") as file:
            file.write("# changed\n")
    seen.append(printed())
    assert len(set(seen)) == 3


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Write modules and import the last one."""
    monkeypatch.syspath_prepend(tmp_path)
    names = set()

    def loaded(**sources):
        importlib.invalidate_caches()
        for name, source in sources.items():
            path = tmp_path / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(source))
            names.update({name.replace("__", "."), name.partition("__")[0]})
        for name in names:
            sys.modules.pop(name, None)
        return importlib.import_module(name_of_last(sources))

    def name_of_last(sources):
        return list(sources)[-1].replace("__", ".")

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield loaded
    for name in names:
        sys.modules.pop(name, None)


MODULES = {
    "a value of a helper module": (
        {"cfg": "MODEL = {}", "mid": "import cfg\ndef name(): return cfg.MODEL"},
        "import mid\ndef find(text): return [mid.name()]",
    ),
    "a value that a helper module imports": (
        {"cfg": "MODEL = {}", "mid": "from cfg import MODEL"},
        "import mid\ndef find(text): return [mid.MODEL]",
    ),
    "a module of a package": (
        {"own__cfg": "MODEL = {}"},
        "import own.cfg\ndef find(text): return [own.cfg.MODEL]",
    ),
    "a metaclass": (
        {"cfg": "class Meta(type):\n    def name(cls): return {}"},
        "from cfg import Meta\nclass A(metaclass=Meta): pass\ndef find(text): return [A.name()]",
    ),
    "a function inside one that a library made": (
        {"cfg": "import contextlib\n@contextlib.contextmanager\ndef name(): yield {}"},
        "from cfg import name\ndef find(text):\n    with name() as one: return [one]",
    ),
    "the state of a part that declares settings": (
        {"cfg": """
            class Part:
                settings = {{"type": "part"}}
                def __init__(self): self.model = {}
                def index(self, documents): pass
                def search(self, queries, k): return [[self.model] for query in queries]
            PART = Part()
        """},
        "from cfg import PART\ndef find(text): return PART.search([text], 1)[0]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MODULES)
def test_other_modules_are_a_part_of_the_code(load, case):
    sources, program = MODULES[case]

    def found(value):
        return code_fingerprint(
            load(**{k: v.format(value) for k, v in sources.items()}, program=program).find
        )

    assert found(1).opaque == ""
    assert found(1) == found(1) != found(2)


def test_values_that_were_set_in_a_module_are_a_part_of_the_code(load):
    source = "import cfg\ndef find(text): return [cfg.MODEL]"
    one = load(cfg="MODEL = 1", program=source)
    before = digest(one.find)
    one.cfg.MODEL = 2
    assert digest(one.find) != before


OPAQUE = {
    "open": "def find(text): return open('w.txt').read().split()",
    "pathlib.Path": "from pathlib import Path\ndef find(text): return [Path('w.txt').read_text()]",
    "pathlib": "import pathlib\ndef find(text): return [pathlib.Path('w.txt').read_text()]",
    "os": "import os\ndef find(text): return [os.environ['MODEL']]",
    "os.getenv": "from os import getenv\ndef find(text): return [getenv('MODEL')]",
    "os._Environ": "from os import environ\ndef find(text): return [environ['MODEL']]",
    "sys": "import sys\ndef find(text): return [sys.modules['cfg'].MODEL]",
    "importlib": "import importlib\ndef find(text): return [importlib.import_module('cfg').MODEL]",
    "__import__": "def find(text): return [__import__('cfg').MODEL]",
    "own.cfg": "def find(text):\n    from own.cfg import MODEL\n    return [MODEL]",
    ".json": "def find(text):\n    from .json import MODEL\n    return [MODEL]",
    "eval": "def find(text): return [eval('MODEL')]",
    "globals": "def find(text): return [globals()['MODEL']]",
    "__doc__": "def find(text): return [find.__doc__]",
    "urllib.request": "def find(text):\n    import urllib.request\n    return [urllib]",
    "sqlite3.Connection": "import sqlite3\nC = sqlite3.connect(':memory:')\n"
    "def find(text): return C.execute(text)",
    "load": "import numpy\ndef find(text): return numpy.load('w.npy')",
    "httpx": "import httpx\nclass find:\n    def ask(self): return httpx.get('http://localhost')",
    "pytest": "import pytest\ndef find(text): return [pytest.approx(1)]",
}


@pytest.mark.parametrize("name", OPAQUE)
def test_code_with_dynamic_lookups_equals_only_itself(load, name):
    one = load(program=OPAQUE[name]).find
    other = load(program=OPAQUE[name]).find
    assert code_fingerprint(one).opaque == name
    assert digest(one) == digest(one) != digest(other)


@pytest.mark.parametrize("name", ["name", "__getattr__"])
def test_a_helper_module_that_reads_files_is_opaque(load, name):
    source = "import cfg\ndef find(text): return [cfg.name]"
    found = load(cfg=f"def {name}(_): return open('w.txt').read()", program=source)
    assert code_fingerprint(found.find).opaque == "open"


def test_a_typical_helper_module_can_be_compared(load):
    helper = """
        from __future__ import annotations
        import collections, dataclasses, enum, functools, logging, math, re, threading, typing
        import numpy as np
        LOG = logging.getLogger(__name__)
        WORD = re.compile("a+")
        T = typing.TypeVar("T")
        Pair = collections.namedtuple("Pair", "one two")
        COUNTS = collections.Counter("abc")
        GROUPS = collections.defaultdict(list)
        VECTORS = np.ones((2, 2))
        LOCK = threading.Lock()
        class Kind(enum.Enum):
            ONE = 1
        @dataclasses.dataclass(frozen=True)
        class Settings:
            kind: Kind = Kind.ONE
            names: list[str] = dataclasses.field(default_factory=list)
        @functools.lru_cache(maxsize=None)
        def half(n: int) -> int: return math.floor(n / 2)
    """
    source = "import helper\ndef find(text): return [helper.half(len(text))]"
    one = code_fingerprint(load(helper=helper, program=source).find)
    assert one.opaque == ""
    assert one == code_fingerprint(load(helper=helper, program=source).find)
