"""Whatever is done to a model file, it is read or refused in words."""

import re

import numpy as np
import pytest

from rankstream.operations.tree_files.formats import FORMATS
from rankstream.operations.tree_files.tree_file import ModelFileRefused
from rankstream.wire.models.forests import fault_of_forest, pack_forest
from tests.rankstream.operations.tree_files.test_model_files import (
    DUMP,
    RANKLIB,
    document,
)
from tests.session.cases import n_cases
from tests.trained_elsewhere import NAMES, lightgbm_model, saved, xgboost_model

N_TRIED = n_cases(400, 20_000)

TOKENS = re.compile(rb'-?[0-9.]+(?:e[-+]?\d+)?|"[^"]*"|[\[\]{}]')

INSTEAD = (
    b"-1", b"99999999999999999999", b"1e999", b"nan", b"null", b"{}", b"[]", b'"a"',
    b"\xff", b"0", b"1.5", b"true", b"-",
)  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, bytes]]:
    """Small ones of each form."""
    folder = tmp_path_factory.mktemp("files")
    booster = xgboost_model(2, names=NAMES, max_depth=2)
    text = str(lightgbm_model(2, num_leaves=4).model_to_string())
    return {
        "text": ("lightgbm", text.partition("feature_importances")[0].encode()),
        "json": ("xgboost", saved(booster, folder, "json")),
        "ubj": ("xgboost", saved(booster, folder, "ubj")),
        "xml": ("ranklib", RANKLIB),
        "dump": ("elasticsearch", document("model/xgboost+json", DUMP)),
        "ensemble": ("elasticsearch", document("model/ranklib", RANKLIB.decode())),
    }


def spoilt(content: bytes, rng: np.random.Generator) -> bytes:
    """With a byte, a token, or a part of it changed, once or twice."""
    changed = bytearray(content)
    tokens = [found.span() for found in TOKENS.finditer(content)]
    for _ in range(int(rng.integers(1, 3))):
        how, at = int(rng.integers(4)), int(rng.integers(len(changed)))
        if how == 0:
            changed[at] = int(rng.integers(256))
        elif how == 1:
            del changed[at : at + int(rng.integers(1, 40))]
        elif how == 2:
            start, end = tokens[int(rng.integers(len(tokens)))]
            changed[start:end] = INSTEAD[int(rng.integers(len(INSTEAD)))]
        else:
            start = int(rng.integers(len(changed)))
            changed[at:at] = changed[start : start + 30]
    return bytes(changed)


@pytest.mark.parametrize("name", ["text", "json", "ubj", "xml", "dump", "ensemble"])
def test_a_spoilt_file_is_read_or_refused(
    name: str, files: dict[str, tuple[str, bytes]]
) -> None:
    """And what is read is whole; of both there are some."""
    form, content = files[name]
    rng = np.random.default_rng(len(name))
    n_read = 0
    for _ in range(N_TRIED):
        try:
            found = FORMATS[form].read(spoilt(content, rng))
        except ModelFileRefused:
            continue
        n_read += 1
        assert not fault_of_forest(pack_forest(found.forest), found.n_features)
    assert 0 < n_read < N_TRIED / 2
