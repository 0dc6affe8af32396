# Types of the compiled core: see native.c.

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Ints: TypeAlias = npt.NDArray[np.int64]
_Hashes: TypeAlias = npt.NDArray[np.uint64]
_Floats: TypeAlias = npt.NDArray[np.float64]
_Ids: TypeAlias = tuple[_Bytes, _Ints, _Ints]
_Capsule: TypeAlias = Any

VERSION: int

def align(
    columns: list[tuple[_Bytes, _Ints, _Ints, _Hashes]], first: _Ints, sizes: _Ints, /
) -> tuple[bytearray, ...] | None: ...
def all_differ(hashes: _Hashes, offsets: _Ints, /) -> bool: ...
def group(
    numbers: npt.NDArray[np.int32], places: _Ints, items: npt.NDArray[Any], into: npt.NDArray[Any], /
) -> None: ...
def judgments(data: _Bytes, starts: _Ints, lengths: _Ints, hashes: _Hashes, offsets: _Ints, /) -> _Capsule: ...
def join(
    judgments: _Capsule | None,
    data: _Bytes,
    starts: _Ints,
    lengths: _Ints,
    hashes: _Hashes | _Ints,
    values: _Floats,
    offsets: _Ints,
    of_run: _Ints,
    by_id: bool,
    /,
) -> tuple[bytearray, bytearray]: ...
def join_lines(
    run: _Capsule,
    judgments: _Capsule,
    data: _Bytes,
    start: int,
    stop: int,
    fields: tuple[int, int, int, int, int],
    last: bool,
    by_id: bool,
    /,
) -> tuple[int, int] | None: ...
def join_table(
    run: _Capsule, judgments: _Capsule, queries: _Ids, docs: _Ids, values: _Floats, offsets: _Ints, by_id: bool, /
) -> int | None: ...
def joined_lines(
    run: _Capsule, /
) -> tuple[bytearray, bytearray, bytearray, bytearray, tuple[int, ...], list[bytes], dict[int, bytes]]: ...
def lines_run(data: _Bytes, starts: _Ints, lengths: _Ints, heads: int, documents: int, /) -> _Capsule: ...
def measure_dicts(
    run: Mapping[str, Mapping[str, float]],
    names: dict[str, int],
    docs: list[str],
    columns: tuple[_Floats, _Ints, _Floats, _Ints, _Floats],
    program: _Floats,
    limits: tuple[int, int],
    order: int,
    unjudged: int,
    /,
) -> (
    tuple[
        bytearray, bytearray, bytearray, tuple[int, ...], list[str], dict[int, list[str | bytes]], bytearray, bytearray
    ]
    | None
): ...
def measure_grades(
    grades: list[float], ideal: list[float], discounts: _Floats, program: _Floats, /
) -> list[float] | None: ...
def number_ids(
    numbering: _Capsule | None,
    data: _Bytes,
    starts: _Ints,
    lengths: _Ints,
    numbers: npt.NDArray[np.int32] | _Hashes,
    /,
) -> None: ...
def numbering() -> _Capsule: ...
def names(numbering: _Capsule, /) -> list[bytes]: ...
def pack_dicts(
    rankings: list[Any], /
) -> tuple[bytearray, bytearray, bytearray, bytearray, bytearray, list[str]] | None: ...
def pack_ids(
    data: _Bytes, starts: _Ints, lengths: _Ints, first: int, last: int, packed: _Bytes, used: int, /
) -> int: ...
def rank_rows(
    data: _Bytes, starts: _Ints, lengths: _Ints, values: _Floats, offsets: _Ints, by_id: bool, /
) -> bytearray | None: ...
def row_lines(
    data: _Bytes,
    starts: _Ints,
    lengths: _Ints,
    values: _Floats,
    before: bytes,
    between: bytes,
    after: bytes,
    rank: int,
    /,
) -> bytes | None: ...
def scan(
    numbering: _Capsule,
    data: _Bytes,
    start: int,
    stop: int,
    fields: tuple[int, int, int, int, int],
    row: int,
    starts: _Ints,
    lengths: _Ints,
    hashes: _Hashes,
    values: _Floats,
    numbers: npt.NDArray[np.int32],
    ranks: _Floats,
    /,
) -> tuple[int, bool, bool, int, int] | None: ...
def sum_terms(high: _Floats, low: _Floats, weights: _Floats, sums: _Floats, /) -> None: ...
