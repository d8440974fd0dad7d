"""Print what a learner spent next to what other decision makers would have spent in the same rounds."""

import numpy as np


def margin(values):
    """Return half the width of a 95 % interval of the mean, from 20 blocks: neighbouring rounds are not independent."""
    blocks = [block.mean() for block in np.array_split(np.asarray(values, float), 20)]
    return 2.09 * np.std(blocks, ddof=1) / len(blocks) ** 0.5


def show(spent, unit, since=0):
    """Print cost per round by name, the learner's under ``learned``, over the rounds after ``since``."""
    learned = np.asarray(spent["learned"], float)[since:]
    print(f"\ncost per round in {unit}, rounds {since + 1} to {since + len(learned)}, with 95 % intervals")
    for name, values in spent.items():
        values = np.asarray(values, float)[since:]
        line = f"  {name:12s} {values.mean():9.3f} ± {margin(values):.3f}"
        if name != "learned":
            difference = learned - values
            line += f"   learned − {name}: {difference.mean():+.3f} ± {margin(difference):.3f}"
        print(line)
