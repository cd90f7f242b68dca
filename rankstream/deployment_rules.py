"""The bound on deployments: how many names of interventions an era has room for."""

import time
from collections.abc import Iterable

from rankstream.settings import Settings
from rankstream.wire.models.deployments import Deployment, interventions_of_era


class DeploymentRefused(RuntimeError):
    """Nothing more can be deployed under a name of its own.

    Operator action: wait for the era that the message names, or raise the limit in
    another namespace.
    """


def check_room(
    settings: Settings,
    deployments: Iterable[Deployment],
    *,
    at_ms: int,
    spare: int = 0,
) -> None:
    """Refuse one more than statistics keep apart.

    Parameters
    ----------
    deployments
        All that there were.
    at_ms
        When the next one is to be.
    spare
        Names that are left to others.

    Raises
    ------
    DeploymentRefused
    """
    limit, keep_ms = settings.limits.interventions, settings.time.keep_ms
    era = at_ms // keep_ms
    known = interventions_of_era(deployments, settings.models, era, keep_ms)
    if len(known) >= limit - spare:
        end = time.strftime("%Y-%m-%d %H:%M", time.gmtime((era + 1) * keep_ms // 1_000))
        left = f", of which {spare} are left to others" if spare else ""
        raise DeploymentRefused(
            f"an era must have at most limits.interventions, {limit}, as statistics "
            f"keep no more apart{left}; this one has {len(known)}: deploy after it "
            f"ends, {end} UTC, or raise the limit in another --namespace"
        )
