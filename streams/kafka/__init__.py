"""What runs the stages on Kafka: transport, transactions, state, supervision."""
