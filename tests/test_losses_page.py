"""The page of losses names what there is, and its program runs."""

import re
from pathlib import Path

import pytest

from models.losses.compiled_loss import EXACT_ITEMS
from models.losses.registry import LOSSES
from tests.pages import rows_below

TEXT = (Path(__file__).parents[1] / "docs" / "losses.md").read_text("utf-8")
PROGRAM = re.compile(r"^```python\n(.*?)```", re.MULTILINE | re.DOTALL)


def test_every_loss_has_a_row_with_what_it_bounds_and_needs() -> None:
    """As the registry says, in its order."""
    expected = [
        [f"`{name}`", entry.bounds, ", ".join(sorted(entry.needs))]
        for name, entry in LOSSES.items()
    ]

    assert rows_below("| loss | bounds | needs |", TEXT) == expected
    assert f"lists of up to {EXACT_ITEMS} items" in TEXT


def test_its_programs_run(capsys: pytest.CaptureFixture[str]) -> None:
    """As they stand there."""
    for program, printed in zip(PROGRAM.findall(TEXT), ("6.47", "one"), strict=True):
        exec(compile(program, "docs/losses.md", "exec"), {})  # noqa: S102
        assert capsys.readouterr().out.startswith(printed)
