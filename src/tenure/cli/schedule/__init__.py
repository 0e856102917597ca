"""``tenure schedule``."""
