"""The newest curve of bias of each model that is one, as its fits say in `training`."""

from typing import Any

import msgspec

from rankstream.wire.curves import CurveRecord, published
from rankstream.wire.envelope import Pointer
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.training import decode_record, decode_training_key


class LearnedCurves:
    """Takes records of `training`; `refused` says why some were passed over."""

    def __init__(self) -> None:
        self.refused = ""
        self._newest: dict[str, CurveRecord] = {}

    def take(self, key: bytes, value: bytes | None) -> bool:
        """Take a record; whether it changes what is shown."""
        found = decode_training_key(key)
        if found is None or found.kind != "curve" or value is None:
            return False
        try:
            record: CurveRecord = decode_record("curve", value)
        except (SchemaRefused, msgspec.DecodeError) as error:
            self.refused = str(error)
            return True
        known = self._newest.get(record.model)
        if known is not None and _place(known) >= _place(record):
            return False
        self._newest[record.model] = record
        return True

    def overview(self) -> list[dict[str, Any]]:
        """Each curve rank by rank, and what it is from; by name of the model."""
        return [
            msgspec.to_builtins(published(record))
            for _, record in sorted(self._newest.items())
        ]


def _place(record: CurveRecord) -> Pointer:
    return Pointer(record.epoch, record.version)
