"""The bound on deployments: how many names of interventions an era has room for."""

import time
from collections.abc import Iterable

from rankstream.settings import Settings
from rankstream.wire.deployments import Deployment, interventions_of_era


class DeploymentRefused(RuntimeError):
    """Nothing more can be deployed under a name of its own.

    Operator action: wait for the era that the message names, or raise the limit in
    another namespace.
    """


def check_room(
    settings: Settings, deployments: Iterable[Deployment], *, at_ms: int
) -> None:
    """Refuse one more than statistics keep apart.

    Parameters
    ----------
    deployments
        All that there were.
    at_ms
        When the next one is to be.

    Raises
    ------
    DeploymentRefused
    """
    limit, keep_ms = settings.limits.interventions, settings.time.keep_ms
    era = at_ms // keep_ms
    known = interventions_of_era(deployments, settings.models, era, keep_ms)
    if len(known) >= limit:
        end = time.strftime("%Y-%m-%d %H:%M", time.gmtime((era + 1) * keep_ms // 1_000))
        raise DeploymentRefused(
            f"an era must have at most limits.interventions, {limit}, as statistics "
            f"keep no more apart; this one has {len(known)}: deploy after it ends, "
            f"{end} UTC, or raise the limit in another --namespace"
        )
