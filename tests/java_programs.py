"""Programs of Java in one file each, which call classes of others for tests."""

import os
import shutil
import subprocess
from pathlib import Path

from deploy.broker import OLDEST_JAVA, jars
from deploy.process import ServerFailed
from tests.services import ServiceMissing, without

FLAGS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A program is short, and the machine busy."""

WARNED = ("-Xlog:disable", "-Xlog:all=warning:stderr")
"""What the virtual machine warns of is nothing that a program printed."""


def libraries_of(pom: Path, name: str, instead: str) -> Path:
    """The folder of the jars that a pom names; without them the test is skipped."""
    try:
        return jars(pom, name, instead)
    except ServerFailed as error:
        without(ServiceMissing(str(error)), os.environ)


def run_java(program: Path, libraries: list[Path], *words: str, instead: str) -> str:
    """What a program printed; it is compiled while it starts.

    Parameters
    ----------
    libraries
        Folders of jars.
    words
        Its arguments.
    instead
        What else helps where there is no JDK, for the message.
    """
    compiler = shutil.which("javac")
    if compiler is None:
        without(
            ServiceMissing(
                f"{program.name} is run by a JDK of Java {OLDEST_JAVA} or newer; javac "
                f"is not on the path: install it, {instead}"
            ),
            os.environ,
        )
    java = str(Path(compiler).with_name("java"))
    path = os.pathsep.join(f"{folder}/*" for folder in libraries)
    command = [java, *FLAGS, *WARNED, "-cp", path, str(program), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout
