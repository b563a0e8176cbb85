"""The API groups that identity's kinds belong to."""

SHARED = "identity.unikorn-cloud.org"
"""Kinds that existing clusters have too."""
OURS = "identity.remuda"
"""Kinds that only we have."""
VERSION = "v1alpha1"
"""The version of all of them."""
