"""The figures of `bench pipeline`, and what they share: a broker, logs, a meter."""
