"""``tenure demo``: every source file of Python's standard library is a job, and a worker dies in the middle."""
