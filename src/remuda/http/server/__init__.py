"""The edge: what stands between clients and the pipeline. The server, its patience, and what is seen of requests."""
