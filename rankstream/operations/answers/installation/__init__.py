"""What an installation is and has: rights, topics, settings, health, a diagnosis."""
