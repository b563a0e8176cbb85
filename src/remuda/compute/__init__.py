"""Compute service: instances, their plans and their history."""
