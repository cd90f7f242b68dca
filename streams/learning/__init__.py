"""Learning: interactions into model snapshots."""
