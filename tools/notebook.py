"""Run notebooks and write them back with their outputs: ``python tools/notebook.py examples/notebook.ipynb``.

Jupyter is not needed: a cell is executed as Python, the value of its last expression is shown unless it ends with
``;``, and figures of matplotlib that it leaves open become PNG pictures.
"""

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot

PICTURE_DPI = 80
Output = dict[str, Any]


def display_value(value: Any) -> Output:
    """Return a value as text, and as HTML where it has such a form."""
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    return {"output_type": "display_data", "data": data, "metadata": {}}


def take_pictures() -> list[Output]:
    """Return the open figures as pictures, and close them."""
    outputs: list[Output] = []
    for number in pyplot.get_fignums():
        buffer = io.BytesIO()
        pyplot.figure(number).savefig(buffer, format="png", dpi=PICTURE_DPI, metadata={"Software": None})
        data = {"image/png": base64.b64encode(buffer.getvalue()).decode(), "text/plain": ["<Figure>"]}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    pyplot.close("all")
    return outputs


def execute(source: str, names: dict[str, Any]) -> list[Output]:
    """Run one cell in the namespace ``names``; its errors are raised."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[Output] = []
    if text := printed.getvalue().splitlines(keepends=True):
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if value is not None and not source.rstrip().endswith(";"):
        outputs.append(display_value(value))
    return outputs + take_pictures()


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with new outputs."""
    matplotlib.use("Agg")
    pyplot.close("all")
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell = {**cell, "execution_count": count, "outputs": execute("".join(cell["source"]), names)}
        cells.append(cell)
    return {**notebook, "cells": cells}


def main() -> None:
    """Run the named notebooks and write them back."""
    for name in sys.argv[1:]:
        path = Path(name)
        document = run(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
