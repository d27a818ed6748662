"""The part of Horovod's API that all frameworks share: the job, its process sets, and submission."""
