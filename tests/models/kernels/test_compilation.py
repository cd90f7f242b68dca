"""Kernels that were cached are those of the sources as they are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba

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
    """What the kernel gives in a process of its own, cached beside it."""
    settings = {"NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "PYTHONPATH"}
    found = subprocess.run(
        [sys.executable, "-c", "import models.outer"],
        cwd=root, capture_output=True, text=True, check=True,
        env={name: one for name, one in os.environ.items() if name not in settings},
    )  # fmt: skip
    return found.stdout.strip()


def test_each_kernel_that_is_compiled_is_told_of_as_it_begins() -> None:
    """What runs already is not; nor what is compiled later."""
    inner: Any = numba.njit(lambda x: x + 1.0)
    outer: Any = numba.njit(lambda x: 2.0 * inner(x))
    told: list[int] = []
    with compilation.telling_of_compilation(told.append):
        assert outer(1.0) == 4.0
        assert outer(2.0) == 6.0
    assert told == [1, 2]
    assert outer(1) == 4.0
    assert told == [1, 2]


def test_what_a_kernel_inlines_may_change_and_move(tmp_path: Path) -> None:
    """Neither is seen by Numba, which looks at the file of the kernel alone."""
    kernels = tmp_path / "models/kernels"
    kernels.mkdir(parents=True)
    shutil.copy(str(compilation.__file__), kernels)
    outer, inner = (tmp_path / f"models/{name}.py" for name in ("outer", "inner"))
    outer.write_text(OUTER.format("inner"))
    inner.write_text(INNER.format(10))
    assert printed(tmp_path) == "11"
    before = folders(kernels)
    inner.write_text(INNER.format(200))  # of another length: bytecode goes by it
    assert printed(tmp_path) == "201"
    after = folders(kernels)
    assert len(before) == len(after) == 2
    assert not set(before) & set(after)


def test_what_a_kernel_does_not_import_leaves_its_cache_alone(tmp_path: Path) -> None:
    """So that a change of one file does not compile everything again."""
    sources = {"outer": "from models.inner import x\n", "inner": "", "other": ""}
    (tmp_path / "models").mkdir()
    found = []
    for changed in (None, "other", "inner"):
        if changed:
            sources[changed] += "# changed\n"
        for name, text in sources.items():
            (tmp_path / f"models/{name}.py").write_text(text)
        compilation.cache_folder.cache_clear()
        found.append(compilation.cache_folder("models.outer", tmp_path, tmp_path))
    assert found[0] == found[1] != found[2]


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
import numpy as np
from models.kernels.exponentials import largest_of, sum_of
values = np.array([1.0, 2.0])
print(largest_of(values), sum_of(values))
"""


def test_a_full_disk_stops_no_kernel(tmp_path: Path) -> None:
    """No byte can be written: it is said once, and what was not kept is not missed."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", FULL],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == "2.0 3.0\n"
        assert done.stderr.count("to their cache; File too large: they are") == 1


NOT_OURS = """
import os
if not os.geteuid():
    os.setreuid(65534, 0)  # whoever may write anywhere is asked as one who may not
from models.kernels.compilation import _keep_kernels_of
print(_keep_kernels_of("models.none"))
"""


def test_a_folder_of_another_user_is_left_for_what_was_asked_for(
    tmp_path: Path,
) -> None:
    """As by an image that was built by root: kernels are kept beside it, not lost."""
    folder = compilation.cache_folder("models.none", compilation.ROOT, tmp_path)
    folder.mkdir(mode=0o555)
    found = subprocess.run(
        [sys.executable, "-c", NOT_OURS],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout == f"{tmp_path}\n"


def folders(kernels: Path) -> list[str]:
    """Where the kernels of both modules lie."""
    cached = kernels / "__pycache__"
    return sorted(path.name for path in cached.glob("models.*"))
