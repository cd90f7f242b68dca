"""What features may be called, in settings and in snapshots."""

MAX_NAME = 256
"""Characters of an intervention or a feature; ingestion takes no longer ids."""


def fault_of_names(names: list[str], n_features: int) -> str:
    """What is wrong with names of features; empty where nothing is."""
    if len(names) != n_features:
        return f"names must be as many as features, {n_features}; got {len(names)}"
    seen: set[str] = set()
    for number, name in enumerate(names, 1):
        if not 0 < len(name) <= MAX_NAME or not name.isprintable():
            # The separator of the hash is no printable character.
            return (
                f"names must be of 1 to {MAX_NAME} printable characters; "
                f"got {name[:MAX_NAME]!r} for feature {number}"
            )
        if name in seen:
            return f"names must differ; got {name!r} again for feature {number}"
        seen.add(name)
    return ""
