"""File storage, and the classes that it comes in."""
