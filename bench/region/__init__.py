"""The benchmark of the region service."""
