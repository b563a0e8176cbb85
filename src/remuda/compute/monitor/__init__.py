"""Monitor of compute: compares instances, servers and quota allocations."""
