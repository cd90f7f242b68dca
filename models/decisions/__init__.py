"""Which of several policies is served: on what evidence, and what it would show."""
