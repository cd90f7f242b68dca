"""The command that runs the rival: jars from Maven, classes from javac."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from deploy import broker
from deploy.broker import OLDEST_JAVA, cache_folder, jars, java
from deploy.process import ServerFailed

HERE = Path(__file__).resolve().parent
POM = HERE / "pom.xml"
SOURCE = HERE / "CountClicks.java"
LOGGING = Path(broker.__file__).parent / "kafka" / "log4j2.properties"
INSTEAD = "or name figures that need no rival"


def rival_command() -> list[str]:
    """What runs the rival, before its own words; compiled where it was not yet.

    Raises
    ------
    ServerFailed
        Where there is no JDK, or Maven is missing or finds no network.
    """
    compiler = shutil.which("javac")
    if compiler is None:
        raise ServerFailed(
            "the rival is compiled by a JDK; javac is not on the path: install a JDK "
            f"of Java {OLDEST_JAVA} or newer, {INSTEAD}"
        )
    libraries = f"{jars(POM, 'rival-libs', INSTEAD)}/*"
    classes = _compiled(compiler, libraries)
    logging = f"-Dlog4j2.configurationFile=file:{LOGGING}"
    return [java(), logging, "-cp", f"{classes}{os.pathsep}{libraries}", SOURCE.stem]


def _compiled(compiler: str, libraries: str) -> Path:
    """The folder of the classes, named after what they are made of."""
    made_of = hashlib.sha256(SOURCE.read_bytes() + POM.read_bytes()).hexdigest()[:16]
    classes = cache_folder() / f"rival-classes-{made_of}"
    if classes.exists():
        return classes
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        made = Path(folder) / "classes"
        command = [
            compiler, "--release", str(OLDEST_JAVA), "-cp", libraries,
            "-d", str(made), str(SOURCE),
        ]  # fmt: skip
        done = subprocess.run(  # noqa: S603  our own command
            command, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            raise ServerFailed(
                f"{SOURCE} must compile with a JDK of Java {OLDEST_JAVA} or newer; "
                f"javac says: {done.stderr.strip()}"
            )
        if not classes.exists():
            made.rename(classes)
    return classes
