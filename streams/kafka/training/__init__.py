"""Trainings and valuations on Kafka: when one is due, what it reads and writes."""
