"""Outcomes: small tasks with a hidden verifier, carried out live under one policy or another (level L3)."""
