"""What one sees of a simulated server: its console, and on it how it boots and applies its user data."""
