"""The API groups that region's kinds belong to."""

SHARED = "region.unikorn-cloud.org"
"""Kinds that existing clusters have too."""
OURS = "region.remuda"
"""Kinds that only we have."""
VERSION = "v1alpha1"
"""The version of all of them."""
