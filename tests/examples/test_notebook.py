"""The notebook runs from top to bottom, and the outputs that it is stored with are of the kinds that it gives."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import notebook  # noqa: E402


def kinds(document):
    """What each cell shows: kinds of output, and of data."""
    outputs = [cell["outputs"] for cell in document["cells"] if cell["cell_type"] == "code"]
    return [[(each["output_type"], sorted(each.get("data", ()))) for each in cell] for cell in outputs]


def test_it_runs_and_shows_what_is_stored():
    stored = json.loads((ROOT / "examples" / "notebook.ipynb").read_text(encoding="utf-8"))
    done = notebook.run(stored)
    assert kinds(done) == kinds(stored)
    shown = [kind for cell in kinds(done) for _, data in cell for kind in data]
    assert shown.count("image/png") >= 2
    assert shown.count("text/html") >= 2
    assert "application/vnd.plotly.v1+json" in shown
    text = json.dumps(done, ensure_ascii=False)
    for words in ("DFHPG-0", "ε-greedy", "Learner", "Health", "Choice 301", "95 % interval"):
        assert words in text
