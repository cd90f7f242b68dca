"""A place in a consumer group: positions that only a member may commit."""
