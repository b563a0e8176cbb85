"""What happens here because of what happens in other services."""
