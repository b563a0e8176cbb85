"""The documents: what is written about an API, made from its table. OpenAPI for programs, a page for people."""
