"""File storage, and the storage classes of a region."""
