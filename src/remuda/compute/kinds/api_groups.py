"""The API groups that compute's kinds belong to."""

SHARED = "compute.unikorn-cloud.org"
"""Kinds that existing clusters have too."""
OURS = "compute.remuda"
"""Kinds that only we have."""
VERSION = "v1alpha1"
"""The version of all of them."""
