"""The lab: benchmarks, reproduced tables and simulated users; no worker needs it."""
