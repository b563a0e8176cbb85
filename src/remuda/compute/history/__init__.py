"""History of instances: timeline, operations and explanation of the present state."""
