"""The notebook runs from top to bottom and gives outputs of the kinds that are stored in it."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import notebook  # noqa: E402

MAX_BYTES = 400_000


def kinds(document):
    """Return the kinds of output of each cell, and of their data."""
    outputs = [cell["outputs"] for cell in document["cells"] if cell["cell_type"] == "code"]
    return [[(output["output_type"], sorted(output.get("data", ()))) for output in cell] for cell in outputs]


def test_it_runs_and_shows_what_is_stored():
    path = ROOT / "examples" / "notebook.ipynb"
    stored = json.loads(path.read_text(encoding="utf-8"))
    executed = notebook.run(stored)
    assert kinds(executed) == kinds(stored)
    data_types = [data_type for cell in kinds(executed) for _, data in cell for data_type in data]
    assert data_types.count("image/png") >= 3
    assert data_types.count("text/html") >= 2
    assert set(data_types) <= {"image/png", "text/html", "text/plain"}
    assert path.stat().st_size < MAX_BYTES
    for document in (stored, executed):
        text = json.dumps([cell["outputs"] for cell in document["cells"] if "outputs" in cell], ensure_ascii=False)
        for words in ("adaptive", "clairvoyant", "Learner", "Health", "Choice 601", "95 % interval", "incumbent"):
            assert words in text
        for place in (str(Path.home()), str(ROOT), "/tmp", "site-packages"):
            assert place not in text
