"""Prints what a learner spent beside what others would have spent in the same rounds."""

import numpy as np


def margin(values):
    """Half the width of a 95 % interval of the mean, from the means of 20 blocks: neighbouring rounds are not independent."""
    blocks = [block.mean() for block in np.array_split(np.asarray(values, float), 20)]
    return 2.09 * np.std(blocks, ddof=1) / len(blocks) ** 0.5


def show(spent, unit, since=0):
    """``spent``: cost of every round by name, the learner's under ``learned``; figures are about the rounds after ``since``."""
    learned = np.asarray(spent["learned"], float)[since:]
    print(f"\ncost per round in {unit}, rounds {since + 1} to {since + len(learned)}, with 95 % intervals")
    for name, values in spent.items():
        values = np.asarray(values, float)[since:]
        line = f"  {name:12s} {values.mean():9.3f} ± {margin(values):.3f}"
        if name != "learned":
            difference = learned - values
            line += f"   learned − {name}: {difference.mean():+.3f} ± {margin(difference):.3f}"
        print(line)
