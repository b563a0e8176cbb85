"""Clients of services: each port of one service, on the other in this process (local) or over HTTP (remote)."""
