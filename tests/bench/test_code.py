"""The fingerprint of code: another one for other code and values, the same one for the same."""

import dataclasses
import datetime as dt
import enum
import functools
import re
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from rankgauge.bench.code import code_fingerprint, remember_arguments
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


def test_constants_inside_a_function_inside_are_looked_at():
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
    (Numbers([1]), Numbers([2])), (Text("a"), Text("b")), (Path("a"), Path("b")),
    (dt.date(2026, 1, 1), dt.date(2026, 1, 2)), (re.compile("a"), re.compile("b")),
    (np.array([1, 2]), np.array([1, 3])), (np.array([1, 2]), np.array([[1, 2]])),
    (np.float64(1), np.float64(2)), ([1].index, [2].index), (BM25(k1=1.0), BM25(k1=2.0)),
    (functools.partial(max, 1), functools.partial(max, 2)), (bytearray(b"a"), bytearray(b"b")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"), PAIRS, ids=[f"{n} {type(one).__name__}" for n, (one, _) in enumerate(PAIRS)]
)
def test_values_are_compared_by_what_they_hold(one, other):
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


def test_what_cannot_be_compared_is_equal_to_itself_only():
    class Holds:
        def __init__(self):
            self.inside = threading.local()

    one = Holds()
    assert digest(one) == digest(one) != digest(Holds())
    assert code_fingerprint(one).opaque == "_thread._local"


def test_locks_decide_nothing():
    class Locked:
        def __init__(self):
            self.lock = threading.Lock()

    assert digest(Locked()) == digest(Locked())


def test_what_holds_itself_and_what_is_too_large_comes_to_an_end():
    loop = []
    loop.append(loop)
    assert code_fingerprint(lambda text: loop).opaque == ""
    large = [[n] for n in range(300_000)]
    assert code_fingerprint(lambda text: large).opaque == "more than 200,000 values"

    class Refuses:
        @property
        def __dict__(self):
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


def test_the_fingerprint_is_the_same_in_every_process(tmp_path):
    code = """
        import helpers
        from pathlib import Path
        from rankgauge.bench.code import code_fingerprint

        WORDS = {"the", "of", "and", "a"}

        class Mine:
            words = frozenset("abc")
            def __init__(self):
                self.path, self.names = Path("x"), {"a", "b", "c"}
            def __call__(self, text):
                from later import late
                return [w for w in WORDS if w in {"x", "y", "z"}] + helpers.more(text, late)

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
    for name in ("helpers", "later", "deeper"):
        (tmp_path / f"{name}.py").write_text("import deeper\n" if name == "helpers" else "")
    for name in ("helpers", "later", "deeper"):
        seen.append(printed())
        assert seen[-1] == printed()
        with (tmp_path / f"{name}.py").open("a") as file:
            file.write("# changed\n")
    seen.append(printed())
    assert len(set(seen)) == 4
