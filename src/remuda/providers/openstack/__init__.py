"""OpenStack provider: a region of an OpenStack cloud, through its documented REST APIs."""
