"""What crosses topics about models: trainings, curves, deployments, canaries."""
