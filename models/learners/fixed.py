"""A ranker whose parameters stay as they began: something else trains it."""

from models.learners.learner import TrainingExample
from models.learners.parameters import LearnerConfig, ParameterLearner


class FixedLearner(ParameterLearner[LearnerConfig]):
    """Learns from no list, by any policy."""

    policies: frozenset[str] = frozenset()

    def learn(self, example: TrainingExample) -> bool:  # noqa: ARG002  of the protocol
        """Leave the parameters as they are."""
        return False
