"""Write tests/long.txt: the test functions whose cases take more than a third of a second on average.

`make test` leaves them to `make test-slow`. Usage, on an idle machine:

    python -m pytest -n auto -m "not slow" --junitxml=times.xml tests
    python scripts/list_long_tests.py times.xml
"""

import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from xml.etree import ElementTree as ET

LIMIT = 0.35  # seconds


def main() -> None:
    """Read the times of a run of pytest, and write the list."""
    times = defaultdict(list)
    for case in ET.parse(sys.argv[1]).iter("testcase"):  # noqa: S314 - our own file
        module, _, cls = case.attrib["classname"].partition(".Test")
        path = module.replace(".", "/") + ".py" + (f"::Test{cls}" if cls else "")
        times[f"{path}::{case.attrib['name'].partition('[')[0]}"].append(float(case.attrib["time"]))
    slow = sorted(name for name, seconds in times.items() if name.startswith("tests/") and fmean(seconds) > LIMIT)
    Path(__file__).parent.with_name("tests").joinpath("long.txt").write_text("\n".join(slow) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
