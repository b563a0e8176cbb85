"""Resources: what the resources of all services share: labels, metadata, queries, and the steps of a write."""
