"""Which lists to show so that a difference in clicks is soon known: LogOpt."""
