"""The benchmark of the compute service, which is that of the whole: everything in one process."""
