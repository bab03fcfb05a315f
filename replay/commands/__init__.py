"""Commands that read and replay."""
