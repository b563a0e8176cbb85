"""A Kubernetes cluster as a provider: its nodes are flavors, and that is all that it has.

Nothing can be made in it from here. It is a region for services that bring clusters of their own into this one.
"""
