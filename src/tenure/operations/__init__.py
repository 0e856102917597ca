"""Looking into queues and operating them: what handles, operators and the command line ask of an application."""

from tenure.operations.operations import Operations
from tenure.operations.overview import QueueOverview, overview
from tenure.operations.retrying import Retried, name_of

__all__ = ["Operations", "QueueOverview", "Retried", "name_of", "overview"]
