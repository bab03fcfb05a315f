"""Sessions that were read and counted before, kept so that the next run need not read and count them again."""
