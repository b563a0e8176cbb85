"""Security groups: the ingress rules of servers."""
