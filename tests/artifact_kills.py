"""Kill processes that save evaluations, at random points, and check that nothing is lost or half.

    python tests/artifact_kills.py WHERE ROUNDS SEED

Prints the number of confirmed evaluations. The processes are forked, so that a round takes little.
"""

import os
import random
import signal
import sys
import time

import numpy as np

from rankgauge import Collection, History, Qrels, Run, evaluate


def inputs(number):
    """Return judgments, a run, and texts that only this number has, with parts that all share."""
    rng = np.random.default_rng(number)
    docs = [f"d{number % 7}-{n}" for n in range(400)]
    run = Run.of({f"q{n}": dict(zip(docs, rng.normal(size=400).tolist(), strict=True)) for n in range(20)})
    qrels = Qrels.of({f"q{n}": {docs[0]: 1, f"only-{number}": 2, "shared": 1} for n in range(20)})
    texts = {doc: f"text of {doc} " * 20 for doc in (*docs, f"only-{number}", "shared")}
    return qrels, run, Collection.of(texts, {f"q{n}": "a question" for n in range(20)})


def save(history, number):
    """Save the evaluation of a number."""
    qrels, run, collection = inputs(number)
    return history.add(evaluate(qrels, run, "RR"), qrels, run=run, collection=collection, label=str(number))


def check(history):
    """Read all that is saved, and return the labels."""
    entries = history.entries()
    for entry in entries:
        qrels, run, collection = inputs(int(entry.label))
        assert history.run(entry) == run
        assert history.qrels(entry) == qrels
        assert history.collection(entry).documents == collection.documents
        assert history.load(entry).mean() == evaluate(qrels, run, "RR").mean()
    return {entry.label for entry in entries}


def _child(where, first, pipe):
    """Save evaluations until killed, confirm each, and delete every third."""
    with History(where) as history:
        for number in range(first, first + 1000):
            entry = save(history, number)
            if number % 3 == 2:
                os.write(pipe, f"deleting {number}\n".encode())
                history.delete(entry)
            else:
                os.write(pipe, f"{number}\n".encode())


def main(where, rounds, seed):
    """Start, kill, and check."""
    rng = random.Random(seed)
    confirmed, deleted = set(), set()
    with History(where) as history:
        save(history, 0)
        start = time.monotonic()
        save(history, 1)
        took = time.monotonic() - start
    for number in range(1, rounds + 1):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            _child(where, 1000 * number, writer)
        os.close(writer)
        time.sleep(rng.uniform(0.1, 4) * took)
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        with os.fdopen(reader) as lines:
            for line in lines.read().splitlines():
                (deleted if line.startswith("d") else confirmed).add(line.split()[-1])
        if number % 20 == 0 or number == rounds:
            with History(where) as history:
                saved = check(history)
            assert confirmed <= saved, confirmed - saved
            # At most the last evaluation of each process was saved and not confirmed.
            assert len(saved - confirmed) <= number + 2
    sys.stdout.write(f"{len(confirmed)}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
