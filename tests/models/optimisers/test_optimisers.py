"""Steps by their definitions; what cannot be served is refused; states go on."""

import numpy as np
import pytest

from models.optimisers.kernel import RATE, step, step_served
from models.optimisers.optimiser import (
    NAMES,
    OptimiserConfig,
    optimiser_of,
    optimiser_state,
    restore_optimiser,
)


def expected_path(name: str, gradients: np.ndarray) -> np.ndarray:
    """Parameters after all steps, from the formulas of the papers."""
    parameters = np.zeros(gradients.shape[1])
    mean, square = np.zeros_like(parameters), np.zeros_like(parameters)
    for t, gradient in enumerate(gradients, start=1):
        rate = 0.3 * 0.9 ** (t - 1)
        if name == "sgd":
            parameters += rate * gradient
        elif name == "adagrad":
            square += gradient**2
            parameters += rate * gradient / (np.sqrt(square) + 1e-8)
        else:
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            corrected = np.sqrt(square / (1 - 0.999**t)) + 1e-8
            parameters += rate * (mean / (1 - 0.9**t)) / corrected
    return parameters


@pytest.mark.parametrize("name", NAMES)
def test_steps_follow_the_definition(name: str) -> None:
    """Seven decaying steps end where the formulas say."""
    gradients = np.random.default_rng(0).normal(size=(7, 5))
    optimiser = optimiser_of(OptimiserConfig(name, 0.3, 0.9), 5)
    parameters = np.zeros(5)
    for gradient in gradients:
        assert step(parameters, gradient, optimiser)

    assert parameters == pytest.approx(expected_path(name, gradients), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e300])
def test_steps_that_cannot_be_served_change_nothing(name: str, wrong: float) -> None:
    """Neither parameters nor the state of the optimiser."""
    optimiser = optimiser_of(OptimiserConfig(name, 1.0, 0.9), 3)
    parameters = np.ones(3)
    assert step(parameters, np.array([0.1, 0.2, 0.3]), optimiser)
    before, state = parameters.copy(), optimiser_state(optimiser)

    assert not step(parameters, np.array([0.1, wrong, 0.3]), optimiser)
    assert (parameters == before).all()
    assert optimiser_state(optimiser) == state


@pytest.mark.parametrize("name", NAMES)
def test_a_restored_optimiser_goes_on_with_the_same_bits(name: str) -> None:
    """Also the rate and what corrects the moments."""
    gradients = np.random.default_rng(1).normal(size=(9, 4))
    config = OptimiserConfig(name, 0.3, 0.9)
    whole, first = optimiser_of(config, 4), optimiser_of(config, 4)
    at_once, parameters = np.zeros(4), np.zeros(4)
    for gradient in gradients:
        step(at_once, gradient, whole)
    for gradient in gradients[:4]:
        step(parameters, gradient, first)
    second = optimiser_of(config, 4)
    restore_optimiser(second, optimiser_state(first))
    for gradient in gradients[4:]:
        step(parameters, gradient, second)

    assert parameters.tobytes() == at_once.tobytes()
    assert second.numbers[RATE] == whole.numbers[RATE]


def test_wrong_settings_and_states_raise() -> None:
    """Names and numbers are checked where they come in."""
    for settings in (
        {"name": "newton"},
        {"learning_rate": 0.0},
        {"learning_rate": np.inf},
        {"decay": 1.1},
        {"epsilon": 0.0},
        {"keep_mean": 1.0},
    ):
        with pytest.raises(ValueError, match="must"):
            OptimiserConfig(**settings)
    adam = optimiser_of(OptimiserConfig("adam"), 4)
    sgd = optimiser_of(OptimiserConfig("sgd"), 4)
    with pytest.raises(ValueError, match="mean must be 0 bytes"):
        restore_optimiser(sgd, optimiser_state(adam))


@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("largest", [1.0, 1e38, 3.3e38, np.inf, np.nan])
def test_steps_of_what_is_served_are_the_same_steps(name: str, largest: float) -> None:
    """To the same bits and refusals, with parameters in float32 beside them."""
    rng = np.random.default_rng(3)
    config = OptimiserConfig(name, 0.5, decay=0.9)
    plain, served = optimiser_of(config, 40), optimiser_of(config, 40)
    parameters = rng.normal(size=40)
    parameters[7] = 1.5e38
    same, weights = parameters.copy(), parameters.astype(np.float32)
    gradient = rng.normal(size=40).astype(np.float32)
    gradient[7] = largest

    for _ in range(3):
        is_done = step(parameters, gradient, plain)
        assert step_served(same, weights, gradient, served) == is_done
        assert same.tobytes() == parameters.tobytes()
        assert weights.tobytes() == parameters.astype(np.float32).tobytes()
        assert optimiser_state(served) == optimiser_state(plain)
