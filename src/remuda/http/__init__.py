"""HTTP framework: one route table, from which dispatch, validation, OpenAPI, the client and the docs follow."""
