"""How snapshots and decisions lie in Redis: clients, scripts, rights."""
