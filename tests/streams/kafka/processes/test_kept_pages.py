"""That memory which was freed is taken again, without new pages."""

import platform
import subprocess
import sys

import pytest

COPIES = """
import resource, sys
from streams.kafka.processes.kept_pages import keep_freed_pages
if sys.argv[1] == "kept":
    keep_freed_pages()

def copied():
    whole = b"".join([b"x" * 2_000] * 500)
    for _ in range(6):
        whole = b"1234" + whole

for _ in range(20):
    copied()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    copied()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 50)
"""


def pages_taken(how: str) -> int:
    """New pages for the copies of a megabyte, once a process has made some."""
    command = [sys.executable, "-c", COPIES, how]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's malloc")
def test_copies_of_a_commit_take_no_new_pages() -> None:
    """Without a word to the C library each copy does."""
    assert pages_taken("kept") < 10
    assert pages_taken("given back") > 500
