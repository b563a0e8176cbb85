"""How much an organization may use, and who uses it."""
