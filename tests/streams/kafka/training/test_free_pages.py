"""What was freed leaves the process, whatever lies between."""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import psutil
from streams.kafka.training.memory import give_back_free_pages
own = psutil.Process()
held = [bytearray(50_000) for _ in range(4_000)]
# The last one stays, so that no end of the heap can be cut off.
del held[:-1]
before = own.memory_info().rss
give_back_free_pages()
print(before - own.memory_info().rss)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc keeps pages")
def test_pages_between_what_lives_are_given_back() -> None:
    """Most of 200 MB, of which one object at the end is left."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 150_000_000
