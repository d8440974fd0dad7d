"""The pages, built once from a copy, so that nothing is left in the working tree."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = importlib.util.find_spec("zensical") is not None


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    if not HERE and not os.environ.get("CI"):
        pytest.skip("needs the pages' generator: make docs")
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for name in ("src", "tools", "papers"):
        (folder / name).symlink_to(ROOT / name)
    where = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "tools"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for words in (["-m", "zensical", "build", "--strict"], ["tools/page_sources.py", "site"]):
        done = subprocess.run([sys.executable, *words], cwd=folder, env=where, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"
