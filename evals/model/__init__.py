"""Measurements that need a model: one client for any OpenAI-compatible endpoint, and what is asked through it.

Everything here is level L2: a model judged on views of a recorded history, one step at a time.
"""
