"""Tables on terminals of any width."""

import pytest
from rich.console import Console
from rich.table import Table

from rankstream.operations.terminal.fitted_table import print_fitted


@pytest.mark.parametrize(
    ("width", "shown", "said"),
    [
        (60, ["item", "clicks", "df"], ""),
        (28, ["item", "clicks"], "no room for: df"),
        (20, ["item"], "no room for: df, clicks"),
    ],
)
def test_columns_that_went_are_named(
    width: int, shown: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names are whole on any terminal, and nobody wonders where a figure is."""
    table = Table()
    for header in ("item", "clicks", "df"):
        table.add_column(header)
    table.add_row("twelve-chars", "1,000", "19")
    print_fitted(Console(width=width), table, ["df", "absent", "clicks"])
    printed = capsys.readouterr().out

    assert [
        name for name in ("item", "clicks", "df") if f" {name} " in printed
    ] == shown
    assert "twelve-chars" in printed
    assert printed.rstrip().endswith(said)
    assert ("no room" in printed) is bool(said)
