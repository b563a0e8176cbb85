"""Reconciliation: controllers that make the desired state true, with their queue, watch sources, results and leader."""
