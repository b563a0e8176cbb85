"""User data of a server: whether cloud-init will know it, and what we add to it."""
