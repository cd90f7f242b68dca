"""Kernels that were cached are those of the sources as they are."""

import shutil
import subprocess
import sys
from pathlib import Path

from models.kernels import compilation

INNER = """
from models.kernels.compilation import inlined
@inlined
def inner(x):
    return x + {}
"""
OUTER = """
from models.kernels.compilation import compiled
from models.{} import inner
@compiled
def outer(x):
    return inner(x)
print(outer(1))
"""


def printed(root: Path) -> str:
    """What the kernel gives in a process of its own."""
    found = subprocess.run(
        [sys.executable, "-c", "import models.outer"],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return found.stdout.strip()


def test_what_a_kernel_inlines_may_change_and_move(tmp_path: Path) -> None:
    """Neither is seen by Numba, which looks at the file of the kernel alone."""
    kernels = tmp_path / "models/kernels"
    kernels.mkdir(parents=True)
    shutil.copy(str(compilation.__file__), kernels)
    outer, inner = (tmp_path / f"models/{name}.py" for name in ("outer", "inner"))
    outer.write_text(OUTER.format("inner"))
    inner.write_text(INNER.format(10))
    assert printed(tmp_path) == "11"
    before = {path.name for path in (kernels / "__pycache__").glob("rankstream*")}
    inner.write_text(INNER.format(20))
    assert printed(tmp_path) == "21"
    after = {path.name for path in (kernels / "__pycache__").glob("rankstream*")}
    assert len(before) == len(after) == 1
    assert before != after


def test_a_cache_that_is_there_is_used(tmp_path: Path) -> None:
    """The same sources have the same folder, wherever caches lie."""
    one = compilation.cache_folder(compilation.ROOT, tmp_path)
    assert one == compilation.cache_folder(compilation.ROOT, tmp_path)
    assert one.name == compilation.cache_folder(compilation.ROOT, Path()).name
