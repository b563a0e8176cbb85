"""User data of a server: what we add to it."""
