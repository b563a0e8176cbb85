"""The benchmark of the identity service."""
