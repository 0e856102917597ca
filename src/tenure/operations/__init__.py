"""Looking into queues and operating them: what handles, operators and the command line ask of an application."""

from tenure.operations.operations import Operations
from tenure.operations.retrying import Retried, name_of

__all__ = ["Operations", "Retried", "name_of"]
