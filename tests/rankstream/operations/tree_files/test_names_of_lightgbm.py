"""Which names of a text of LightGBM are names, and which only count features."""

import pytest

from rankstream.operations.tree_files.lightgbm_text import read_lightgbm
from tests.trained_elsewhere import NAMES, lightgbm_model

COUNTED = [f"Column_{number}" for number in range(len(NAMES))]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([f"Column_{name}" for name in NAMES], [f"Column_{name}" for name in NAMES]),
        (COUNTED[::-1], COUNTED[::-1]),
        (COUNTED, []),
    ],
)
def test_names_that_begin_as_lightgbms_own_do_are_names(
    names: list[str], expected: list[str]
) -> None:
    """Only those that count from 0 to the last are none."""
    text = str(lightgbm_model(2, names=NAMES).model_to_string())
    written = f"feature_names={' '.join(NAMES)}\n"
    assert text.count(written) == 1
    text = text.replace(written, f"feature_names={' '.join(names)}\n")
    assert read_lightgbm(text.encode()).names == expected
