"""Quotas: limits of organizations and projects, and the allocations that are counted against them."""
