"""Writing sessions: Rewindow's own format, OpenAI chat messages, ATIF trajectories."""
