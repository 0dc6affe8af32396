"""What is said once about a measure: the declaration, and the registry of all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from rankgauge.core.grammar import VOCABULARY, Value, plain_key
from rankgauge.data.judged_run import Values
from rankgauge.errors import UnknownName

__all__ = [
    "DECLARED", "NAMES", "SPECIAL", "TREC", "Declaration", "Expected", "Kernel", "Reads", "measure",
]  # fmt: skip

Kernel: TypeAlias = Callable[..., Values]
Expected: TypeAlias = Kernel | Literal["", "linear", "same"]
Reads: TypeAlias = Literal["binary", "grades", "judged", "subtopics", "samples", "preferences"]

# What only judgments with more columns say; each has a noun in `rankgauge.data.special_judgments`.
SPECIAL = ("subtopics", "samples", "preferences")


class Declaration(NamedTuple):
    """What is said once about a measure, and feeds parser, docs, command line and tests.

    Attributes:
        name: The name, as the field writes it.
        kernel: ``(JudgedRun, *, words) -> (Q,) float64``, NaN where undefined.
        defaults: Its words with their defaults; `required` has those without.
        required: Words that must be given.
        at: The word that stands behind ``@``.
        trec: The name of its twin in trec_eval; ``{k}`` stands for the cut-off. Empty without one.
        trec_cut: The same with a cut-off, where trec_eval has another name for that.
        also: Other names people write, with the parameters that they stand for.
        bounds: Smallest and largest possible value.
        better: Whether higher or lower is better; ``neither`` for counts.
        mean: How values are averaged.
        undefined: What an undefined value does in the mean.
        reads: Whether it reads ``grades`` (gains), only relevant or not (``binary``), or whether
            a document was judged at all (``judged``); or judgments that say more than a grade
            (`SPECIAL`), such as ``subtopics``: then its kernel sees another noun than `JudgedRun`.
        curve: Values of `at` that a bare name stands for.
        stated: Words that the name always states, since tools differ in their default.
        expected: How its mean over all orders of equal scores is found: ``linear``, by the kernel
            itself from an averaged run, since it only adds up what ranks are worth; ``same``, no
            order changes it; or by a function as the kernel. Empty where there is no closed form.
        unless: Words with a value with which there is none.
        monotone: Whether a document of a higher grade further up never makes it worse, so that the
            orders by grade are the best and the worst.
        upset: Words with a value with which it may.
    """

    name: str
    kernel: Kernel
    defaults: Mapping[str, Value]
    required: tuple[str, ...]
    at: str
    trec: str
    trec_cut: str
    also: Mapping[str, Mapping[str, Value]]
    bounds: tuple[float, float]
    better: Literal["higher", "lower", "neither"]
    mean: Literal["arithmetic", "geometric", "sum"]
    undefined: Literal["zero", "skip"]
    reads: Reads
    curve: tuple[float, ...]
    stated: tuple[str, ...]
    expected: Expected
    unless: Mapping[str, Value]
    monotone: bool
    upset: Mapping[str, Value]

    @property
    def words(self) -> tuple[str, ...]:
        """Every word the measure takes."""
        return (*self.required, *self.defaults)

    @property
    def doc(self) -> str:
        """Formula, range, when to use it, source."""
        return inspect.cleandoc(self.kernel.__doc__ or "")


DECLARED: dict[str, Declaration] = {}
NAMES: dict[str, tuple[str, Mapping[str, Value]]] = {}
TREC: dict[str, tuple[str, str]] = {}


def measure(  # noqa: PLR0913 - what is said once is said here
    *,
    trec: str = "",
    trec_cut: str = "",
    also: Mapping[str, Mapping[str, Value]] | Iterable[str] = (),
    bounds: tuple[float, float] = (0.0, 1.0),
    better: Literal["higher", "lower", "neither"] = "higher",
    mean: Literal["arithmetic", "geometric", "sum"] = "arithmetic",
    undefined: Literal["zero", "skip"] = "zero",
    reads: Reads = "binary",
    at: str = "k",
    curve: tuple[float, ...] = (),
    stated: tuple[str, ...] = (),
    judged_only: bool = True,
    expected: Expected = "",
    unless: Mapping[str, Value] | None = None,
    monotone: bool = True,
    upset: Mapping[str, Value] | None = None,
) -> Callable[[Kernel], Kernel]:
    """Declare a measure: the function's name is its name, its keywords are its parameters."""

    def declare(kernel: Kernel) -> Kernel:
        words = list(inspect.signature(kernel).parameters.values())[1:]
        strange = [word.name for word in words if word.name not in VOCABULARY]
        if strange:
            raise UnknownName(f"{kernel.__name__}: {strange[0]!r} is not in the vocabulary")
        defaults: dict[str, Value] = {
            word.name: word.default for word in words if word.default is not word.empty
        }
        if judged_only:
            defaults["judged_only"] = False
        names = also if isinstance(also, Mapping) else {name: {} for name in also}
        declared = Declaration(
            kernel.__name__, kernel, defaults,
            tuple(word.name for word in words if word.default is word.empty),
            at, trec, trec_cut, names, bounds, better, mean, undefined, reads, curve, stated,
            expected, unless or {}, monotone, upset or {},
        )  # fmt: skip
        DECLARED[declared.name] = declared
        for name, params in {declared.name: {}, **names}.items():
            NAMES[plain_key(name)] = (declared.name, params)
        for twin in filter(None, (trec, trec_cut)):
            stem, _, cut = twin.partition("{")
            TREC[stem] = (declared.name, at if cut else "")
        return kernel

    return declare
