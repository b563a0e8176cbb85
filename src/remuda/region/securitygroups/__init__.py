"""Security groups: what may reach the servers of a network."""
