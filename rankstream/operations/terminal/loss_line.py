"""Which loss a ranker was trained by, in a line."""

from rankstream.wire.training import RunRecord


def loss_line(run: RunRecord) -> str:
    """The loss; where it was chosen from several also how far others are behind it.

    With standard errors, of differences by query, where there are any.
    """
    if not run.losses:
        return run.loss
    others = [each for each in run.losses if each.loss != run.loss]
    (best,) = (each for each in run.losses if each.loss == run.loss)
    behind = ", ".join(
        f"{each.loss} {_with_error(each.behind, each.behind_error)}" for each in others
    )
    parts = [
        f"{run.loss}, the best of {len(run.losses)} by unclipped estimates of DCG "
        f"of held-out queries, {_with_error(best.dcg, best.error)}",
        f"behind: {behind}" if behind else "",
        f"diverged: {', '.join(_fallen(run))}" if _fallen(run) else "",
        "± one standard error" if best.error is not None else "",
    ]
    return "; ".join(filter(None, parts))


def _fallen(run: RunRecord) -> list[str]:
    """Losses of the settings that came to nothing."""
    came = {each.loss for each in run.losses}
    wanted = run.settings.get("training", {}).get("losses", [])
    return [loss for loss in wanted if loss not in came]


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.4f}" + ("" if error is None else f" ± {error:.4f}")
