"""Numbers of things, as people say them."""


def counted(number: int, thing: str, things: str = "") -> str:
    """`1 list`, `2 lists`, `1,000 queries`.

    Examples
    --------
    >>> counted(1, "list"), counted(2_000, "query", "queries")
    ('1 list', '2,000 queries')
    """
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"
