"""Organizations and their projects."""
