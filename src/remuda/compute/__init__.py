"""The compute service: instances, and what makes, keeps and explains them."""
