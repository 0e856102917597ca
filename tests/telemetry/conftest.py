"""What these tests share with those of the worker."""

from tests.worker.conftest import quick

__all__ = ["quick"]
