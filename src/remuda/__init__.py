"""Remuda: a multi-tenant cloud compute control plane."""
