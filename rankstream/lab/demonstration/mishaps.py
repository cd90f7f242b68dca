"""What happens to events on their way from simulated users to the pipeline."""

import msgspec
import numpy as np

from rankstream.wire.topics import CLICKS
from streams.local import LocalPipeline


class Mishaps:
    """What happens to events on their way: repeats, strays and garbage, a few each.

    The pipeline must sort them out, and the screen shows that it does.
    """

    def __init__(self, pipeline: LocalPipeline, rng: np.random.Generator) -> None:
        self._pipeline = pipeline
        self._rng = rng

    def send(self, topic: str, value: bytes, key: bytes | None = None) -> None:
        """Pass an event on; now and then twice, or with something else behind it."""
        self._pipeline.send(topic, value, key)
        luck = self._rng.random()
        if luck < 0.02:
            self._pipeline.send(topic, value, key)
        elif luck < 0.025:
            self._pipeline.send(CLICKS, value[: len(value) // 2])
        elif luck < 0.03 and topic == CLICKS:
            event = msgspec.json.decode(value)
            event["impression_id"] = "nobody saw this"
            self._pipeline.send(CLICKS, msgspec.json.encode(event))

    def flush(self) -> None:
        """Pass on what waits."""
        self._pipeline.flush()

    def end(self) -> None:
        """End every source."""
        self._pipeline.end()
