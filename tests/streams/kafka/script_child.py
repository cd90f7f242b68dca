"""What a preloaded process of a test runs: a script, as `python -c` would."""

import sys


def main(words: list[str]) -> int:
    """Run the first word, with the others as its arguments."""
    script, *arguments = words
    sys.argv = ["-c", *arguments]
    exec(script, {"__name__": "__main__"})  # noqa: S102
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
