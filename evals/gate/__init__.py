"""Regression gate: golden views of recorded sessions, and what differs from them."""
