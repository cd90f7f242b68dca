"""What a dashboard shows and what is alerted on: one table, and files made of it."""
