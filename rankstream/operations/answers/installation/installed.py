"""What is installed here: versions, the compiled core, and packages of the extras."""

import importlib
import importlib.metadata
import platform
import re
from collections.abc import Iterator

from rankstream.installation import CORE, EXTRA, EXTRA_OF_PLOTS, EXTRA_OF_SERVE
from rankstream.operations.answers.installation.finding import FAILS, OK, Finding

PART = "installation"

OPTIONAL = (EXTRA_OF_SERVE, EXTRA_OF_PLOTS)
"""Whose packages may be missing."""


def installation_findings() -> Iterator[Finding]:
    """Look at packages and at the core; nothing is started."""
    version = importlib.metadata.version("rankstream")
    python = platform.python_version()
    yield Finding(PART, OK, f"rankstream {version} on Python {python}")
    yield _of_core()
    missing = missing_of(EXTRA)
    if missing:
        yield Finding(
            PART,
            FAILS,
            f"packages of {EXTRA} must be installed; {', '.join(missing)} are not: "
            f"pip install '{EXTRA}'",
        )
    for extra in OPTIONAL:
        missing = missing_of(extra)
        told = f"not there: {', '.join(missing)}; pip install '{extra}'"
        yield Finding(PART, OK, f"{extra}: {told if missing else 'installed'}")


def _of_core() -> Finding:
    try:
        importlib.import_module(CORE)
    except ImportError as error:
        return Finding(PART, FAILS, str(error))
    return Finding(PART, OK, "the fold's core is compiled")


def missing_of(extra: str) -> list[str]:
    """Packages that an extra itself names for this machine and that are not there.

    Parameters
    ----------
    extra
        As pip takes it, `rankstream[NAME]`.
    """
    name = extra.partition("[")[2].rstrip("]")
    found = []
    for told in importlib.metadata.requires("rankstream") or ():
        package, _, marker = told.partition(";")
        is_of_it = re.search(rf"extra == ['\"]{name}['\"]", marker)
        project = re.match(r"[\w.-]+", package)
        # Which platforms a package is for, only an installer can tell.
        if not is_of_it or project is None or "sys_platform" in marker:
            continue
        if project[0] != "rankstream" and not _is_there(project[0]):
            found.append(project[0])
    return found


def _is_there(project: str) -> bool:
    try:
        importlib.metadata.version(project)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
