"""What the modules of a package define: to find what somebody left out of a table."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def defined_in(package: ModuleType) -> Iterator[Any]:
    """Classes and functions of all modules of a package, each where it was written."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        loaded = importlib.import_module(module.name)
        for each in vars(loaded).values():
            if getattr(each, "__module__", "") == module.name:
                yield each
