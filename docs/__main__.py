"""`python -m docs`: the site, from the pages and the code, into `site/`."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from docs.staging import TREE, stage

CONFIGURATION = "zensical.toml"

PAGES = Path("build", "pages")
"""Where the pages lie before they are drawn, as the configuration has it."""


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site into `site/` below a folder; a warning is an error."""
    if folder != TREE:
        shutil.copyfile(TREE / CONFIGURATION, folder / CONFIGURATION)
    stage(folder / PAGES)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    return subprocess.run(  # noqa: S603
        command, cwd=folder, check=False, text=True, capture_output=True
    )


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m docs",
        description="Build the documentation: pages, with those that are made of the "
        f"code, into {PAGES}/, and the site of them into site/.",
    ).parse_args()
    done = build(TREE)
    sys.stderr.write(done.stdout + done.stderr)
    sys.exit(done.returncode)
