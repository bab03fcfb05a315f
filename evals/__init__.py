"""What a replay means: measurements, comparison, storage and reports."""
