"""Which behaviours of the contract suite race processes for seconds."""

import inspect
from collections.abc import Callable
from typing import Any

from tenure.testing.contract import about_chaos, about_races


def races(behaviour: Callable[..., Any]) -> bool:
    """Tell whether it takes several processes and some seconds."""
    return inspect.getmodule(behaviour) in {about_chaos, about_races}
