"""What these tests share with those of the worker and of the command line."""

from tests.cli.conftest import everywhere, tenure
from tests.worker.conftest import quick

__all__ = ["everywhere", "quick", "tenure"]
