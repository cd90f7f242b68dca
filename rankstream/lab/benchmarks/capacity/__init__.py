"""What `rankstream plan` multiplies by, measured, and how well it foretells a run."""
