"""Sweeps: grids and searches over a policy's parameters, and what they allow to say."""
