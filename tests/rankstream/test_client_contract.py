"""What a service imports is held apart from what it does without: each module of it."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]

NO_CLIENT = {"__init__", "__main__", "lab", "notebook", "operations"}
"""The doors of a notebook and of the command line, and what lies behind them."""


def modules_of_client(root: Path) -> set[str]:
    """Modules and rooms of `rankstream/` that services import."""
    names = {path.stem for path in root.glob("*.py")}
    names |= {path.parent.name for path in root.glob("*/__init__.py")}
    return {f"rankstream.{name}" for name in names - NO_CLIENT}


def test_every_module_of_the_client_is_in_its_contract(tmp_path: Path) -> None:
    """Else import-linter would let it import Kafka; nothing else is named there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (alone,) = [
        contract["source_modules"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"].endswith("what a service imports stand alone")
    ]
    assert modules_of_client(ROOT / "rankstream") == set(alone)
    for added in ("new.py", "room/__init__.py", "operations/__init__.py"):
        (tmp_path / added).parent.mkdir(exist_ok=True)
        (tmp_path / added).touch()
    assert modules_of_client(tmp_path) == {"rankstream.new", "rankstream.room"}
