"""Images: catalogue, snapshots, and the import from a URL or an upload."""
