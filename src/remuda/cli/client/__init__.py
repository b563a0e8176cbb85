"""API client of the CLI: login contexts, OAuth 2 tokens and requests."""
