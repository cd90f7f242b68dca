"""What is raised while no broker answers."""


class BrokerAway(RuntimeError):
    """No broker answers for now.

    Operator action: none, unless it stays away.
    """
