"""The benchmark of operations."""
