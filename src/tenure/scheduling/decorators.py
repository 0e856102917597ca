"""``@app.cron`` and ``@app.every``."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Unpack
from zoneinfo import ZoneInfo

from tenure.job import Register
from tenure.scheduling.scheduling import Scheduling
from tenure.scheduling.terms import Terms, given


class Scheduled:
    """The decorators of an application that define schedules."""

    schedules: Scheduling
    """Schedules: those of the code, and what is stored."""

    def cron(
        self,
        expression: str,
        /,
        *,
        tz: str | ZoneInfo = "UTC",
        name: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **terms: Unpack[Terms],
    ) -> Register:
        """Let a job be pushed whenever a cron expression is due in a time zone, with these arguments.

        Above ``@app.job``, or instead of it. The schedule is named like the job unless it is given a name. Nothing is
        sent: a process that fires schedules stores it. Raises ``InvalidOption``.
        """
        return self.schedules.defining(given(expression, tz, None), terms, name=name, args=args, kwargs=kwargs)

    def every(
        self,
        interval: float | timedelta,
        /,
        *,
        name: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **terms: Unpack[Terms],
    ) -> Register:
        """Let a job be pushed every so many seconds, at multiples of them since 1970; see ``cron``."""
        return self.schedules.defining(given(None, "UTC", interval), terms, name=name, args=args, kwargs=kwargs)
