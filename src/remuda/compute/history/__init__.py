"""What happened to an instance and why, and what it waits for."""
