"""Tables of the documentation, as tests compare them with the code."""


def rows_below(head: str, text: str) -> list[list[str]]:
    """Cells of every row of each table of a page that has this head."""
    found, is_inside = [], False
    for line in text.splitlines():
        if line == head:
            is_inside = True
        elif not line.startswith("|"):
            is_inside = False
        elif is_inside and not line.startswith("|---"):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found
