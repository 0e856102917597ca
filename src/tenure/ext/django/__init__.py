"""Pushes that are part of a transaction of Django's, or follow it, by the alias of the database."""

from tenure.ext.django.blocks import begin
from tenure.ext.django.transactions import enlist

__all__ = ["begin", "enlist"]
