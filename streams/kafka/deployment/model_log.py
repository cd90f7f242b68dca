"""The one writer of what is deployed of a model: trainers, and operators."""

from rankstream.wire.topics import EVALUATIONS, SNAPSHOTS, TRAINING
from streams.kafka.deployment.fenced_log import FencedLog, WriterFenced
from streams.kafka.state.whole_topics import Check
from streams.training.model_records import ModelRecords


class ModelLog(FencedLog):
    """The one writer of a model's interventions, as long as nobody fences it."""

    role = "train"
    topics = (SNAPSHOTS, TRAINING, EVALUATIONS)

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

    def _taken(self) -> WriterFenced:
        return WriterFenced(
            f"a model must have one writer at a time; another one has {self._name!r} "
            "now, a trainer or the command of an operator, and nothing of this one was "
            f"written: `rankstream snapshots history {self._name}` tells what it did"
        )
