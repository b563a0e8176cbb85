"""Plans: the description of what an update does to an instance, before it is executed."""
