"""Runs a command and prints as JSON what it took: CPU and wall seconds, peak MiB, its output.

    python -I -S benchmarks/launch.py '{"words": [...], "stdin": null}'

A system counts the memory of the process that starts another as a part of the other's peak, so the
one that starts has to be small; it is a process of its own so that only one child is counted.
"""

import json
import resource
import subprocess
import sys
import time

if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    clock = time.perf_counter()
    child = subprocess.Popen(
        asked["words"],
        stdin=subprocess.PIPE if asked["stdin"] else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if asked["stdin"]:
        try:
            with open(asked["stdin"], "rb") as source, child.stdin as pipe:  # noqa: PTH123 - small
                while block := source.read(1 << 16):
                    pipe.write(block)
        except BrokenPipeError:
            pass  # it refuses what it is given, and says why
        child.stdin = None
    out, err = child.communicate()
    wall = time.perf_counter() - clock
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        json.dumps(
            {
                "cpu": used.ru_utime + used.ru_stime,
                "wall": wall,
                "peak": used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10),
                "out": out.decode(),
                "err": err.decode(errors="replace"),
                "status": child.returncode,
            }
        )
    )
