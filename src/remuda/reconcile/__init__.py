"""Reconciling: controllers make intent true. A keyed queue, watch sources, results, and the driver that joins them."""
