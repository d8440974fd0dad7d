"""Update the list of tests that ``make check`` leaves out: ``python tools/slow_tests.py REPORT.xml [REPORT.xml …]``.

The reports are those of ``pytest --junitxml=REPORT.xml``; a test is slow if one of its cases takes more than half a
second. The time of compiling, and that of a shared fixture, counts for the first test that needs it: report a whole run
and then ``make fast``, or add a module without the name of a test to leave it out as a whole. Such lines are kept.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

LIST = Path(__file__).parents[1] / "tests" / "slow.txt"
LIMIT = 0.5  # seconds


def main(reports: list[str]) -> None:
    """Write the slow modules, and the slow tests of others as ``module::function``."""
    modules = {line for line in LIST.read_text("utf-8").split() if "::" not in line}
    cases = [case.attrib for report in reports for case in ElementTree.parse(report).iter("testcase")]
    slow = {(case["classname"], case["name"].partition("[")[0]) for case in cases if float(case["time"]) > LIMIT}
    tests = {f"{module}::{name}" for module, name in slow if module not in modules}
    LIST.write_text("\n".join(sorted(modules | tests)) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
