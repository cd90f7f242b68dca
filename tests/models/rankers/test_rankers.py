"""Scores by definition, gradients by central differences."""

import numpy as np
import pytest

from models.rankers.registry import ranker_of


def test_a_linear_score_is_an_inner_product() -> None:
    """Parameters times features; learning begins at zero."""
    rng = np.random.default_rng(0)
    for n_features in (1, 7, 8, 46):
        ranker = ranker_of("linear", n_features)
        features = rng.normal(size=(5, n_features))
        parameters = rng.normal(size=n_features)

        assert ranker.score(parameters, features) == pytest.approx(
            features @ parameters, rel=1e-12
        )
        assert not ranker.initial_parameters(rng=rng).any()


def test_a_neural_score_follows_its_layout() -> None:
    """Weights by input, then biases, layer by layer; the score has no bias."""
    ranker = ranker_of("neural", 3, [4, 2])
    rng = np.random.default_rng(1)
    parameters = rng.normal(size=ranker.n_parameters)
    features = rng.normal(size=(6, 3))

    def sigmoid(values: np.ndarray) -> np.ndarray:
        return np.asarray(1.0 / (1.0 + np.exp(-values)))

    first, first_biases = parameters[:12].reshape(3, 4), parameters[12:16]
    second, second_biases = parameters[16:24].reshape(4, 2), parameters[24:26]
    hidden = sigmoid(sigmoid(features @ first + first_biases) @ second + second_biases)

    assert ranker.n_parameters == 28
    assert ranker.score(parameters, features) == pytest.approx(
        hidden @ parameters[26:], rel=1e-12
    )


@pytest.mark.parametrize("kind", ["neural", "neural-tanh", "neural-relu"])
@pytest.mark.parametrize("hidden", [[], [1], [5], [4, 3], [4, 3, 2]])
def test_gradients_equal_central_differences(kind: str, hidden: list[int]) -> None:
    """The contraction with coefficients is that of the weighted sum of scores."""
    ranker = ranker_of(kind if hidden else "linear", 6, hidden)
    rng = np.random.default_rng(2)
    parameters = rng.normal(size=ranker.n_parameters)
    features, coefficients = rng.normal(size=(4, 6)), rng.normal(size=4)
    coefficients[1] = 0.0
    steps = 1e-5 * np.eye(len(parameters))
    differences = [
        coefficients
        @ (
            ranker.score(parameters + step, features)
            - ranker.score(parameters - step, features)
        )
        / 2e-5
        for step in steps
    ]

    gradient = ranker.accumulate(parameters, features, coefficients)

    assert gradient == pytest.approx(differences, abs=1e-8)


@pytest.mark.parametrize(
    ("kind", "active"),
    [("neural-tanh", np.tanh), ("neural-relu", lambda values: np.maximum(values, 0))],
)
def test_other_activations_score_by_their_definition(kind: str, active) -> None:
    """The same layout with another function between the layers."""
    ranker = ranker_of(kind, 3, [4])
    rng = np.random.default_rng(1)
    parameters, features = rng.normal(size=20), rng.normal(size=(6, 3))
    hidden = active(features @ parameters[:12].reshape(3, 4) + parameters[12:16])

    assert ranker.score(parameters, features) == pytest.approx(
        hidden @ parameters[16:], rel=1e-12
    )


def test_neural_parameters_begin_small_and_seeded() -> None:
    """The deviation is one over the inputs, and a seed gives the same ones again."""
    ranker = ranker_of("neural", 100, [64])

    drawn = ranker.initial_parameters(rng=np.random.default_rng(3))
    again = ranker.initial_parameters(rng=np.random.default_rng(3))

    assert drawn.tobytes() == again.tobytes()
    assert drawn[: 101 * 64].std() == pytest.approx(1 / 100, rel=0.05)
    assert drawn[101 * 64 :].std() == pytest.approx(1 / 64, rel=0.35)


@pytest.mark.parametrize(
    ("kind", "n_features", "hidden"),
    [("linear", 0, []), ("linear", 3, [2]), ("neural", 3, []), ("neural", 3, [0])],
)
def test_shapes_that_make_no_sense_raise(
    kind: str, n_features: int, hidden: list[int]
) -> None:
    """A ranker says which of its numbers is wrong."""
    with pytest.raises(ValueError, match=r"features|hidden"):
        ranker_of(kind, n_features, hidden)


def test_unknown_kinds_and_wrong_arrays_raise() -> None:
    """Names and lengths are checked at the boundary."""
    ranker = ranker_of("linear", 3)

    with pytest.raises(ValueError, match="kind must be one of"):
        ranker_of("tree", 3)
    with pytest.raises(ValueError, match="parameters must number 3; got 2"):
        ranker.score(np.zeros(2), np.zeros((1, 3)))
    with pytest.raises(ValueError, match="features must be documents by n_features"):
        ranker.score(np.zeros(3), np.zeros((1, 4)))
    with pytest.raises(ValueError, match="must share their documents"):
        ranker.accumulate(np.zeros(3), np.zeros((1, 3)), np.zeros(2))
