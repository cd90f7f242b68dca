"""Whether what a command needs is installed, and is ours.

The base brings what a service needs that ranks: numpy, redis and msgspec. Commands
need the extra `pipeline`, and packages of ours with names that a service may use too
(`models`, `streams`): Python takes whichever lies first on its path.
"""

import importlib.util
import sys
from pathlib import Path

ROOMS = ("models", "streams", "producers", "deploy")
"""Our packages beside `rankstream`, by names that others may have."""

EXTRA = "rankstream[pipeline]"

EXTRA_OF_NOTEBOOK = "rankstream[local]"
"""What `rankstream.read` needs, and what answers of it: no client of Kafka."""

OF_KAFKA = {"kafka", "aiokafka"}

EXTRA_OF_SERVE = "rankstream[serve]"
"""What the command `serve` needs, the pipeline's among it."""

OF_SERVE = {"httptools", "starlette", "uvicorn"}

EXTRA_OF_PLOTS = "rankstream[plots]"
"""What draws pictures."""

OF_PLOTS = {"matplotlib"}

EXTRA_OF_TREES = "rankstream[trees]"
"""What trees are compared with that were trained elsewhere, and the pipeline's."""

OF_TREES = {"lightgbm"}

CORE = "streams.native.core_library"
"""What says itself what is wrong with the compiled core."""


class NotInstalled(RuntimeError):
    """A package that a command needs is missing, or is somebody else's.

    Operator action: install or move what the message names, and start again.
    """


def check_rooms() -> None:
    """Refuse to start where one of our packages is hidden by a stranger's.

    Raises
    ------
    NotInstalled
        With both places, and the ways out.
    """
    ours = Path(__file__).resolve().parents[1]
    for room in ROOMS:
        found = importlib.util.find_spec(room)
        if found is None:
            raise NotInstalled(_broken(room))
        # A folder without `__init__.py` has no origin, only places.
        folders = found.submodule_search_locations or []
        places = [Path(place).resolve() for place in folders]
        if ours / room not in places:
            place = places[0] if places else found.origin
            raise NotInstalled(
                f"the package `{room}` must be rankstream's own, {ours / room}; "
                f"{place} comes first on Python's path: run the command `rankstream` "
                "from another folder, and without PYTHONPATH (a service keeps its own "
                f"`{room}` beside rankstream.ranker, which does not need ours)"
            )


def not_installed(
    missing: ImportError, command: str = "", *, asked: str = ""
) -> NotInstalled:
    """What to install, where an import failed.

    Parameters
    ----------
    command
        Which command was to be run.
    asked
        Which name of `rankstream` was asked for, in a notebook instead.

    Raises
    ------
    ImportError
        The same, where no installation would help: a module of Python or our own.
    """
    if missing.name == CORE:
        return NotInstalled(str(missing))
    if not isinstance(missing, ModuleNotFoundError):
        raise missing
    package = (missing.name or "").partition(".")[0]
    if package in ROOMS:
        return NotInstalled(_broken(str(missing.name)))
    if package in {"", "rankstream", *sys.stdlib_module_names}:
        raise missing
    is_of_serve = command == "serve" or package in OF_SERVE
    extra = EXTRA_OF_SERVE if is_of_serve else EXTRA
    extra = EXTRA_OF_PLOTS if package in OF_PLOTS else extra
    extra = EXTRA_OF_TREES if package in OF_TREES else extra
    if asked and package not in OF_KAFKA | OF_SERVE | OF_PLOTS | OF_TREES:
        extra = EXTRA_OF_NOTEBOOK
    name, who = extra.partition("[")[2].rstrip("]"), asked or "this command"
    return NotInstalled(
        f"{who} needs the extra `{name}`, and {package} is not installed: pip install "
        f"'{extra}'"
    )


def path_options() -> list[str]:
    """Options for a Python that we start: its path is to begin as ours does.

    `python -m` puts the folder at hand first, where a service may have a `models` of
    its own; the command `rankstream` does not.
    """
    return [] if sys.path[:1] in ([""], [str(Path.cwd())]) else ["-P"]


def _broken(module: str) -> str:
    return (
        f"`{module}` must lie beside the package rankstream; it is not there, as where "
        "another distribution has a package of the same name: install "
        f"'{EXTRA}' into an environment of its own"
    )
