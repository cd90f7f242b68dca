"""What may go out to a share of sessions: refused before anything is written."""

from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.operations.answers.models import canaries
from rankstream.operations.answers.models.promotion import Candidate
from rankstream.redis_store.redis_scripts import CanarySwap
from rankstream.snapshots import SnapshotStore, decode_snapshot
from streams.kafka.deployment.operator_change import ChangeRefused, Wanted
from tests.canary_factory import canary_record
from tests.services import RedisService
from tests.snapshot_factory import envelope

pytestmark = pytest.mark.broker
WANTED = Wanted("m", None, "ann")


def candidate(**fields: Any) -> Candidate:
    """A version of another model."""
    return Candidate("shadow", decode_snapshot(envelope(7, model="shadow", **fields)))


def test_what_ranks_as_what_is_served_is_refused(
    redis_server: RedisService, namespace: str
) -> None:
    """And a second one beside another; any other may go out."""
    store = SnapshotStore(redis_server.url, namespace=namespace)
    canaries.check_new(store, WANTED, candidate())  # nothing is served yet
    store.publish(envelope(1))
    served = decode_snapshot(envelope(1))
    same = Candidate("shadow", msgspec.structs.replace(served, model="shadow"))
    with pytest.raises(ChangeRefused, match=r"the weights of m@0\.1: nothing could be"):
        canaries.check_new(store, WANTED, same)
    other = np.arange(3, dtype="<f4").tobytes()
    canaries.check_new(store, WANTED, candidate(weights=other))
    store.publish_with("m", [], CanarySwap("", canary_record()))
    with pytest.raises(
        ChangeRefused, match=r"must have one canary at a time; m@0\.9 is"
    ):
        canaries.check_new(store, WANTED, candidate(weights=other))
    store.close()
