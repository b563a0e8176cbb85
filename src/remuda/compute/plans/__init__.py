"""What a change of an instance would do, told before it is done, and what may not be done without that."""
