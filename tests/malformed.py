"""Responses of model servers with one or several faults, as functions of a seed."""

import copy
import json
import random

# JSON texts that replace a part of a response.
_ODD = (
    "null",
    "true",
    "false",
    "-1",
    "0",
    "1",
    "1.5",
    "1e400",
    "-1e400",
    "NaN",
    "-Infinity",
    "[]",
    "{}",
    '""',
    '"x"',
    '"1"',
    '"\\ud800"',
    "1" + "0" * 400,
    "-1" + "0" * 400,
    '"' + "y" * 5000 + '"',
    "[" * 300 + "]" * 300,
    "[" * 5000 + "]" * 5000,
    '[["a"]]',
    '{"error": {"code": []}}',
    "1e39",
)
_MARK = "replace-me"


def _places(value, path=()):
    """Yield the path of every part of a JSON value."""
    yield path
    rows = {dict: dict.items, list: enumerate}.get(type(value), lambda _: ())(value)
    for key, part in rows:
        yield from _places(part, (*path, key))


def malformed(response, seed):
    """Return the bytes of a response, mutated; about one in ten is as it was."""
    rng = random.Random(seed)
    changed = copy.deepcopy(response)
    odd = []
    for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2, 2, 3, 5))):
        path = rng.choice(list(_places(changed)))
        if not path:
            changed = _MARK
            odd.append(rng.choice(_ODD))
            break
        parent = changed
        for key in path[:-1]:
            parent = parent[key]
        if rng.random() < 0.15:
            del parent[path[-1]]
        elif rng.random() < 0.1:
            other = rng.choice(list(_places(changed)))
            found = changed
            for key in other:
                found = found[key]
            parent[path[-1]] = copy.deepcopy(found)
        else:
            parent[path[-1]] = _MARK
            odd.append(rng.choice(_ODD))
    raw = json.dumps(changed)
    for text in odd:
        raw = raw.replace(json.dumps(_MARK), text, 1)
    if rng.random() < 0.05:
        raw = raw[: rng.randrange(len(raw) + 1)]
    return raw.encode()
