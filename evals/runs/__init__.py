"""Runs that survive: engines that carry out the work, parts that are kept, folders that can be gone on with."""
