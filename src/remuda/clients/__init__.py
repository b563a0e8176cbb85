"""Clients of services: each API of one service, used by the other in this process (local) or over HTTP (remote)."""
