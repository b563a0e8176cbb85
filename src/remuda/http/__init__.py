"""The API kernel: one table of routes, from which dispatch, validation, OpenAPI, the client and the docs follow."""
