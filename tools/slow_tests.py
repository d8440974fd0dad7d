"""List the tests that ``make check`` leaves out: ``python tools/slow_tests.py REPORT.xml > tests/slow.txt``.

The report is that of ``pytest --junitxml=REPORT.xml``; a test is slow if one of its cases takes more than a second.
"""

import sys
from xml.etree import ElementTree

LIMIT = 1.0  # seconds


def main(report: str) -> None:
    """Print the slow tests as ``module::function``."""
    cases = ElementTree.parse(report).iter("testcase")
    slow = {(case.attrib["classname"], case.attrib["name"].partition("[")[0]) for case in cases if is_slow(case)}
    print("\n".join(sorted(f"{module}::{name}" for module, name in slow)))


def is_slow(case: ElementTree.Element) -> bool:
    """Return whether a test took longer than the limit."""
    return float(case.attrib["time"]) > LIMIT


if __name__ == "__main__":
    main(sys.argv[1])
