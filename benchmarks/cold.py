"""A process that is timed from its start: the means of two files by one engine.

python benchmarks/cold.py ENGINE QRELS RUN MEASURE...
"""

import sys

from engines import ENGINES

if __name__ == "__main__":
    engine, qrels, run, *measures = sys.argv[1:]
    means = ENGINES[engine].files(qrels, run, measures)
    print("\n".join(f"{name} {float(value)!r}" for name, value in means.items()))
