"""Quota: the payer of a resource, and its reservation, confirmation, change and release together with the resource."""
