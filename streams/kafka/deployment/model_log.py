"""The one writer of what is deployed of a model: trainers, and operators."""

from rankstream.wire.topics import EVALUATIONS, SNAPSHOTS, TRAINING
from streams.kafka.clients import Cluster
from streams.kafka.deployment.fenced_log import FencedLog, WriterFenced
from streams.kafka.state.whole_topics import Check
from streams.training.model_records import ModelRecords


class ModelLog(FencedLog):
    """The one writer of a model's interventions, as long as nobody fences it.

    Parameters
    ----------
    name
        Of the model.
    timeout_ms
        After so long the broker aborts what its producer left.
    """

    def __init__(self, cluster: Cluster, name: str, timeout_ms: int) -> None:
        self._name = name
        super().__init__(
            cluster,
            f"rankstream-train-{name}",
            (SNAPSHOTS, TRAINING, EVALUATIONS),
            timeout_ms,
            self._of_another,
        )

    async def read(self, models: frozenset[str], check: Check) -> ModelRecords:
        """What `snapshots` and `training` say, all that was begun before decided.

        Parameters
        ----------
        check
            Is called before each batch, and may raise.
        """
        records = ModelRecords(models)
        await self.read_topic(SNAPSHOTS, records.take_snapshot, check)
        await self.read_topic(TRAINING, records.take_training, check)
        return records

    def _of_another(self) -> WriterFenced:
        return WriterFenced(
            f"a model must have one writer at a time; another one has {self._name!r} "
            "now, a trainer or the command of an operator, and nothing of this one was "
            f"written: `rankstream snapshots history {self._name}` tells what it did"
        )
