"""The figures of `bench serve`, their rival and their clients."""
