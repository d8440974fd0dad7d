"""The pages, built once from a copy of the working tree."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HAS_GENERATOR = importlib.util.find_spec("zensical") is not None


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    if not HAS_GENERATOR and not os.environ.get("CI"):
        pytest.skip("needs the pages' generator: make docs")
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for name in ("src", "tools", "papers"):
        (folder / name).symlink_to(ROOT / name)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "tools"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for arguments in (["-m", "zensical", "build", "--strict"], ["tools/page_sources.py", "site"]):
        result = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stdout + result.stderr
        assert "griffe:" not in result.stdout + result.stderr, "a docstring that the reference cannot show"
    return folder / "site"
