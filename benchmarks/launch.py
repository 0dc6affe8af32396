"""Run a command and print its CPU and wall seconds, peak MiB, and output as JSON.

    python -I -S benchmarks/launch.py '{"words": [...], "stdin": null}'

The operating system counts the memory of the parent process in the peak of its child, so the
parent has to be small. It is a separate process so that only one child is counted.
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
            pass  # the command rejects its input and reports why
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
