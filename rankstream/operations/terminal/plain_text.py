"""Text of events as a terminal shows it: never as markup, never as a command."""

from rich.markup import escape


def plain(text: str) -> str:
    r"""Text without control characters and without markup, for a table of `rich`.

    Examples
    --------
    >>> plain("red shoes"), plain("[/]"), plain("a\x1b[2J")
    ('red shoes', '\\[/]', 'a\\x1b[2J')
    """
    return escape(visible(text))


def visible(text: str) -> str:
    r"""Text without control characters, for what is written as it is.

    Examples
    --------
    >>> visible("[a\x1b[2J]")
    '[a\\x1b[2J]'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
