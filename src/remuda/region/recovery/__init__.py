"""Recovery: retry, abandon, adopt and forget, for objects that a controller cannot reconcile."""
