"""Evaluate two files with one engine and print the means; timed as a whole process.

python benchmarks/cold.py ENGINE QRELS RUN MEASURE...
"""

import sys

from engines import ENGINES

if __name__ == "__main__":
    engine, qrels, run, *measures = sys.argv[1:]
    means = ENGINES[engine].files(qrels, run, measures)
    print("\n".join(f"{name} {float(value)!r}" for name, value in means.items()))
