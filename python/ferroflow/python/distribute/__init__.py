"""Where the tasks of a cluster are."""
