"""How commands reach a Remuda over its API: who is logged in where, and every request."""
