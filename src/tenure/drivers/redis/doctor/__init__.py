"""Looks at a server for what would break a promise: one file a subject, each check telling risk and remedy."""

from tenure.drivers.redis.doctor.examination import diagnose

__all__ = ["diagnose"]
