"""What an instance can be made of, and which release answers."""
