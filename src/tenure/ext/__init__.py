"""Integrations with other libraries, each an extra of its own and imported by whoever wants it."""
