"""How rankstream is built: by setuptools, and with the fold's core compiled (PEP 517).

A compiler is asked for, as the package `ziglang`, only where the path has none.
"""

import base64
import contextlib
import hashlib
import importlib
import platform
import shutil
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streams.native.compiler import (
    FOLDER,
    MACOS,
    NotCompiled,
    compile_into,
    requirements,
)

INSIDE_WHEEL = "streams/native/"

Config = dict[str, Any] | None


def _setuptools() -> Any:
    # Only builds have it: whoever imports this module may not.
    return importlib.import_module("setuptools.build_meta")


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """End with what is wrong and what to do: whoever installs shows all else too."""
    try:
        yield
    except NotCompiled as error:
        sys.exit(f"rankstream: {error}")


def platform_tag() -> str:
    """The platform that the library is for, as wheels name it."""
    if sys.platform == "darwin":
        return f"macosx_{MACOS.replace('.', '_')}_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def get_requires_for_build_wheel(config_settings: Config = None) -> list[str]:
    """What the build needs: a compiler too, where there is none."""
    with _in_words():
        needed = requirements()
    return [*_setuptools().get_requires_for_build_wheel(config_settings), *needed]


get_requires_for_build_editable = get_requires_for_build_wheel


def get_requires_for_build_sdist(config_settings: Config = None) -> list[str]:
    """What setuptools needs; nothing is compiled."""
    return list(_setuptools().get_requires_for_build_sdist(config_settings))


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Config = None
) -> str:
    """As setuptools does."""
    name: str = _setuptools().prepare_metadata_for_build_wheel(
        metadata_directory, config_settings
    )
    return name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_sdist(sdist_directory: str, config_settings: Config = None) -> str:
    """The sources, those in C among them."""
    name: str = _setuptools().build_sdist(sdist_directory, config_settings)
    return name


def build_editable(
    wheel_directory: str,
    config_settings: Config = None,
    metadata_directory: str | None = None,
) -> str:
    """A link to this tree, with the library compiled into it."""
    with _in_words():
        compile_into(FOLDER)
    name: str = _setuptools().build_editable(
        wheel_directory, config_settings, metadata_directory
    )
    return name


def build_wheel(
    wheel_directory: str,
    config_settings: Config = None,
    metadata_directory: str | None = None,
) -> str:
    """A wheel with the library, for any Python on this platform."""
    # Sources that are gone since would stay in a wheel that is built again.
    for stale in Path("build").glob("*/streams/native"):
        shutil.rmtree(stale)
    with tempfile.TemporaryDirectory() as folder:
        with _in_words():
            library = compile_into(Path(folder))
        pure: str = _setuptools().build_wheel(
            folder, config_settings, metadata_directory
        )
        name = pure.replace("-none-any.whl", f"-none-{platform_tag()}.whl")
        with_library(Path(folder, pure), library, Path(wheel_directory, name))
    return name


def with_library(pure: Path, library: Path, wheel: Path) -> None:
    """Write a wheel of ours again, with the library and the tag of its platform."""
    recorded = []
    with zipfile.ZipFile(pure) as old, zipfile.ZipFile(wheel, "w") as new:

        def write(entry: zipfile.ZipInfo, content: bytes) -> None:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
            recorded.append(
                f"{entry.filename},sha256={digest.decode().rstrip('=')},{len(content)}"
            )
            new.writestr(entry, content, zipfile.ZIP_DEFLATED)

        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith(".dist-info/RECORD"):
                record = entry
                continue
            if entry.filename.endswith(".dist-info/WHEEL"):
                content = content.replace(b"Purelib: true", b"Purelib: false")
                content = content.replace(
                    b"Tag: py3-none-any", b"Tag: py3-none-" + platform_tag().encode()
                )
            write(entry, content)
        added = zipfile.ZipInfo(
            INSIDE_WHEEL + library.name, old.infolist()[0].date_time
        )
        added.external_attr = 0o100755 << 16
        write(added, library.read_bytes())
        lines = [*recorded, f"{record.filename},,", ""]
        new.writestr(record, "\n".join(lines), zipfile.ZIP_DEFLATED)
