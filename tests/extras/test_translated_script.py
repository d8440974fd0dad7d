"""The script of PyEPO in ``docs/pyepo.md`` and its translation, run as they are printed."""

import re
from pathlib import Path

import numpy as np

import regretless as rg
from extra import required

required("pyepo"), required("torch"), required("ortools")
PAGE = Path(__file__).parents[2] / "docs" / "pyepo.md"


def test_the_translated_script_gives_the_regret_of_the_script():
    section = PAGE.read_text("utf-8").partition("## A script, translated")[2].partition("\n## ")[0]
    names = {}
    import torch

    torch.manual_seed(0)
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(block, names)
    assert abs(names["score"].relative_regret - names["regret"]) < 0.02
    assert names["score"].relative_regret < 0.2
    np.testing.assert_array_equal(names["slower"].optima, names["train"].optima)
    np.testing.assert_allclose(names["same"].params, names["fit"].params, rtol=1e-6, atol=1e-9)
    assert rg.offline.score(names["same"], names["test"]).relative_regret == names["score"].relative_regret
