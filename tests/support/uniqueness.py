"""Whether a store has unique jobs, said loudly where it has not."""

import pytest

from tenure import Tenure
from tests.support.absent import PREFIX


def needs_unique(app: Tenure) -> None:
    """Go on with a store that has unique jobs; with another one, nothing is proven."""
    can = app.queue().capabilities
    if not can.unique:
        pytest.skip(f"{PREFIX}: the driver {can.driver!r} has no unique jobs")
