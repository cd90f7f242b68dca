"""The adapters by name."""

from rankstream.adapters.adapter import Adapter
from rankstream.adapters.own import Own

ADAPTERS: tuple[Adapter, ...] = (Own(),)
"""In the order in which help texts tell of them."""

NAMES = tuple(each.name for each in ADAPTERS)


def adapter_named(name: str) -> Adapter:
    """The adapter of this name.

    Raises
    ------
    ValueError
        Where there is none.
    """
    for each in ADAPTERS:
        if each.name == name:
            return each
    raise ValueError(f"a format must be one of {NAMES}; got {name!r}")
