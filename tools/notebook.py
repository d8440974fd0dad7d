"""Run notebooks and write them back with their outputs: ``python tools/notebook.py examples/notebook.ipynb``.

No Jupyter is needed: a cell is executed as Python, the value of its last expression is shown unless it ends with ``;``,
and figures of matplotlib that it leaves open become pictures.
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

Output = dict[str, Any]


def lines(text: str) -> list[str]:
    """Text as a notebook stores it."""
    return text.splitlines(keepends=True)


def shown(value: Any) -> Output:
    """Return a value as a notebook shows it: plain, and as HTML or a plotly chart where it has one."""
    data: dict[str, Any] = {"text/plain": lines(repr(value)[:2000])}
    if hasattr(value, "to_plotly_json"):
        data = {"text/plain": ["a plotly figure"], "application/vnd.plotly.v1+json": json.loads(value.to_json())}
    elif hasattr(value, "_repr_html_"):
        data["text/html"] = lines(value._repr_html_())
    return {"output_type": "display_data", "data": data, "metadata": {}}


def pictures() -> list[Output]:
    """Return the open figures and close them."""
    import matplotlib.pyplot as plt

    found: list[Output] = []
    for number in plt.get_fignums():
        buffer = io.BytesIO()
        plt.figure(number).savefig(buffer, format="png", dpi=80, metadata={"Software": None})
        data = {"image/png": base64.b64encode(buffer.getvalue()).decode(), "text/plain": ["<Figure>"]}
        found.append({"output_type": "display_data", "data": data, "metadata": {}})
    plt.close("all")
    return found


def execute(source: str, names: dict[str, Any]) -> list[Output]:
    """Run one cell in the namespace ``names``; its errors are raised."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    outputs: list[Output] = []
    names["display"] = lambda value: outputs.append(shown(value))
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    if printed.getvalue():
        outputs.insert(0, {"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    if value is not None and not source.rstrip().endswith(";"):
        outputs.append({**shown(value), "output_type": "execute_result"})
    return outputs + pictures()


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with new outputs."""
    matplotlib.use("Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            outputs = execute("".join(cell["source"]), names)
            for output in outputs:
                if output["output_type"] == "execute_result":
                    output["execution_count"] = count
            cell = {**cell, "execution_count": count, "outputs": outputs}
        cells.append(cell)
    return {**notebook, "cells": cells}


def main() -> None:
    """Run the named notebooks and write them back."""
    for name in sys.argv[1:]:
        path = Path(name)
        done = run(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
