"""``remuda instance``: looking at instances, making and changing them, and what can be done to one."""
