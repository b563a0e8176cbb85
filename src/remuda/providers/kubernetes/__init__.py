"""Kubernetes provider: a cluster whose nodes are offered as flavors, without any other capability.

Nothing is created in the cluster from here. It is a region for services that create clusters of their own in it.
"""
