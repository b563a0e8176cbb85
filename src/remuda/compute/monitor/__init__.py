"""What looks whether instances, servers and what is held for them agree."""
