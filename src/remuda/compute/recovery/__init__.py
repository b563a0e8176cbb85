"""What an operator can do where compute does not go on by itself."""
