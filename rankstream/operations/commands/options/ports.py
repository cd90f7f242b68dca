"""The option of commands that listen."""

import argparse

LARGEST = 65_535


def port(told: str) -> int:
    """A port, or 0 for any free one.

    Examples
    --------
    >>> port("0"), port("8088")
    (0, 8088)
    """
    try:
        found = int(told)
    except ValueError:
        found = -1
    if not 0 <= found <= LARGEST:
        raise argparse.ArgumentTypeError(f"must be 0 to {LARGEST}; got {told:.60}")
    return found
