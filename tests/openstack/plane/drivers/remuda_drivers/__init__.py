"""Drivers that stand in for agents and storage, which these services have none of."""
