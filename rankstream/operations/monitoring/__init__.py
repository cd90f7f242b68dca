"""What `rankstream monitor` gathers, and how it is shown."""
