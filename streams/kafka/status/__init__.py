"""What a process tells of itself: its page, its metrics, and how its start went."""
