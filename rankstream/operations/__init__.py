"""What an operator runs: commands, pages, services, and what only they need."""
