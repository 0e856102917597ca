"""A small model of one job: which transitions its state allows."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from tenure.testing.history.events import Audit

ENDS: Final = {"ack", "drop", "aside"}
SETTLES: Final = ENDS | {"fail", "release"}
Broken = Iterator[tuple[str, str]]
"""The invariant that an event breaks, and how."""


class JobModel:
    """Follows one job through the audit; ``apply`` tells what a transition breaks, and then believes it."""

    def __init__(self, tolerance: int, crash_limit: int | None) -> None:
        self.state: str = "none"
        """``none waiting leased failed gone``."""
        self.pushes: int = 0
        self.taken: dict[str, str] = {}
        """How each lease that was settled ended, by its token."""
        self.over: str = ""
        """How it ended for good: the transition."""
        self.made_at: int | None = None
        """The number of the audit line that made it first."""
        self.ends: list[Audit] = []
        """The audit lines by which it ended, or failed."""
        self.free: set[str] = set()
        """The leases that were given back free of charge, and those of which the store does not tell that."""
        self.renewals: Counter[str] = Counter()
        """How often each lease was extended, by its token."""
        self.lapses: int = 0
        """Leases that ended by their deadline."""
        self._tolerance = tolerance
        self._crash_limit = crash_limit
        self._incarnation = 0
        self._token = ""
        self._fence = 0
        self._tokens: set[str] = set()
        self._deadline = 0
        self._due: int | None = None
        self._deliveries = self._free = self._crashes = 0
        self._steps: dict[str, Callable[[Audit], Broken]] = {
            "push": self._push,
            "grant": self._grant,
            "renew": self._renew,
            "lapse": self._lapse,
            "promote": self._promote,
            "request": self._request,
            "cancel": self._cancel,
            "clear": self._cancel,
            "retry": self._retry,
            "forget": self._forget,
            "aside": self._aside,
        }

    def apply(self, event: Audit) -> Broken:
        """Yield what this transition breaks."""
        if event.what in SETTLES and (event.token or event.what != "aside"):
            return self._settle(event)
        return self._steps[event.what](event)

    def _renew(self, event: Audit) -> Broken:
        yield from self._held(event)
        self.renewals[event.token] += 1
        self._deadline = event.until or self._deadline

    def _promote(self, event: Audit) -> Broken:
        yield from self._from("waiting", event)
        if self._due is not None and event.at < self._due - self._tolerance:
            yield "I9", f"promoted {self._early(event)}"
        self._due = None

    def _request(self, event: Audit) -> Broken:
        yield from self._from("leased", event)

    def _cancel(self, event: Audit) -> Broken:
        yield from self._from("waiting", event)
        self._end(event)

    def _retry(self, event: Audit) -> Broken:
        yield from self._from("failed", event)
        self._begin(event)

    def _forget(self, event: Audit) -> Broken:
        yield from self._from("failed", event)
        self._end(event)

    def _aside(self, event: Audit) -> Broken:
        """A record that could not be read."""
        if self.state not in {"waiting", "leased"}:
            yield "I6", f"set aside while it is {self.state}"
        self._end(event)

    def _push(self, event: Audit) -> Broken:
        if self.state not in {"none", "gone"}:
            yield "I2", f"made a second time while it is {self.state}"
        if self.pushes and event.incarnation <= self._incarnation:
            yield "I6", f"a new job has the incarnation {event.incarnation}, no higher than the earlier one's"
        self.pushes += 1
        self.made_at = event.number if self.made_at is None else self.made_at
        self._begin(event)

    def _begin(self, event: Audit) -> None:
        self.state, self.over = "waiting", ""
        self._incarnation, self._due = event.incarnation, event.until
        self._deliveries = self._free = self._crashes = 0

    def _end(self, event: Audit) -> None:
        self.state, self.over = "gone", event.what
        self.ends.append(event)

    def _grant(self, event: Audit) -> Broken:
        if self.state == "leased":
            if event.at < self._deadline - self._tolerance:
                yield "I3", f"granted while an earlier lease had {self._deadline - event.at} µs to go"
            self._lapsed()  # and the store did not tell so by itself
        elif self.state != "waiting":
            yield "I6", f"granted while it is {self.state}"
        if event.incarnation != self._incarnation:
            yield "I6", f"a lease on incarnation {event.incarnation}, where {self._incarnation} is the current one"
        if self._due is not None and event.at < self._due - self._tolerance:
            yield "I9", f"granted {self._early(event)}"
        if event.fence is not None:
            if event.fence <= self._fence:
                yield "I3", f"the fence {event.fence} is no higher than {self._fence} before it"
            self._fence = event.fence
        if event.token in self._tokens:
            yield "I3", f"the token {event.token} was given before"
        yield from self._count(event)
        self._tokens.add(event.token)
        self.state, self._token, self._deadline, self._due = "leased", event.token, event.until or event.at, None

    def _count(self, event: Audit) -> Broken:
        counted = self._deliveries + 1
        if event.deliveries is not None:
            if event.deliveries != counted:
                yield "I5", f"delivery {event.deliveries}, where {counted} would follow"
            counted = event.deliveries
        self._deliveries = counted
        if event.free is not None:
            if event.free != self._free:
                yield "I5", f"{event.free} free returns are told, and there were {self._free}"
            self._free = event.free
        if event.crashes is not None:
            if event.crashes != self._crashes:
                yield "I5", f"{event.crashes} crashes are told, and there were {self._crashes}"
            self._crashes = event.crashes
        if self._crash_limit is not None and self._crashes > self._crash_limit + 1:
            yield "I5", f"{self._crashes} crashes, over the limit of {self._crash_limit}"

    def _held(self, event: Audit) -> Broken:
        if not event.named:
            yield "I4", f"{event.what} of the lease {event.token} by a call that did not name it"
        if self.state != "leased":
            yield "I4", f"{event.what} by the lease {event.token} while it is {self.state}{self._how()}"
        elif event.token != self._token:
            yield "I4", f"{event.what} by the stale lease {event.token}; the current one is {self._token}"

    def _lapse(self, event: Audit) -> Broken:
        if self.state != "leased":
            yield "I6", f"a lease is taken away while it is {self.state}{self._how()}"
        elif event.at < self._deadline - self._tolerance:
            yield "I3", f"a lease is taken away {self._deadline - event.at} µs before its deadline"
        self._lapsed()
        self.state, self._due = "waiting", None

    def _lapsed(self) -> None:
        self._crashes += 1
        self.lapses += 1

    def _settle(self, event: Audit) -> Broken:
        if event.token in self.taken:
            yield "I4", f"{event.what} by the lease {event.token}, which was settled before ({self.taken[event.token]})"
        yield from self._held(event)
        self.taken[event.token] = event.what
        if event.what in ENDS:
            self._end(event)
        elif event.what == "fail":
            self.state = "failed"
            self.ends.append(event)
        else:
            self.state, self._due = "waiting", event.until
            yield from self._leaves(event)

    def _leaves(self, event: Audit) -> Broken:
        """A release tells the counters that it leaves: of either, one more at most."""
        for name, before, after in (("free", self._free, event.free), ("crashes", self._crashes, event.crashes)):
            if after is not None and not before <= after <= before + 1:
                yield "I5", f"a release leaves {name} at {after}, and it was {before}"
        if event.free is None or event.free > self._free:
            self.free.add(event.token)
        self._free = self._free if event.free is None else event.free
        self._crashes = self._crashes if event.crashes is None else event.crashes

    def _from(self, state: str, event: Audit) -> Broken:
        if self.state != state:
            yield "I6", f"{event.what} while it is {self.state}{self._how()}"

    def _how(self) -> str:
        return f" ({self.over})" if self.over else ""

    def _early(self, event: Audit) -> str:
        return f"{(self._due or 0) - event.at} µs before it is due"
