"""Images: what servers boot from, and how one is fetched from elsewhere."""
