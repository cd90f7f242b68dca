"""What brings Kafka and Redis up, for development, tests and benchmarks."""
