"""The newest curve of bias of each model that is one, as its fits say in `training`."""

from collections.abc import Mapping
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
        self._fits: dict[str, dict[Pointer, CurveRecord]] = {}

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
        fits = self._fits.setdefault(record.model, {})
        if _place(record) in fits:
            return False
        fits[_place(record)] = record
        return True

    def overview(self, served: Mapping[str, Pointer]) -> list[dict[str, Any]]:
        """Each curve rank by rank, and what it is from; by name of the model.

        Parameters
        ----------
        served
            The newest version of models: a later epoch than any fit is a rollback, to
            the last one of that version before it.
        """
        return [
            msgspec.to_builtins(published(_taken(fits, served.get(model))))
            for model, fits in sorted(self._fits.items())
        ]


def _taken(fits: Mapping[Pointer, CurveRecord], served: Pointer | None) -> CurveRecord:
    newest = fits[max(fits)]
    if served is None or served.epoch <= newest.epoch:
        return newest
    same = [place for place in fits if place.version == served.version]
    if not same:
        return newest
    return msgspec.structs.replace(fits[max(same)], epoch=served.epoch)


def _place(record: CurveRecord) -> Pointer:
    return Pointer(record.epoch, record.version)
