"""What the driver is made of, for one event loop."""

from tenure.drivers.redis.aside import UnreadableRecords
from tenure.drivers.redis.claiming import Claims
from tenure.drivers.redis.coalescing import Pushes
from tenure.drivers.redis.composing import Composer
from tenure.drivers.redis.controlling import Controls
from tenure.drivers.redis.failing import FailedStore
from tenure.drivers.redis.keeping import Keeping
from tenure.drivers.redis.layout import Layout
from tenure.drivers.redis.listing import Listing
from tenure.drivers.redis.reading import Desk
from tenure.drivers.redis.retiring import Retirement
from tenure.drivers.redis.scheduling import Timers
from tenure.drivers.redis.session import Session
from tenure.drivers.redis.settling import Settlements
from tenure.drivers.redis.sweeping import Sweeper


class Parts:
    """The parts of one event loop."""

    def __init__(self, session: Session, layout: Layout) -> None:
        self.session = session
        self.pushes = Pushes(session, layout.capabilities)
        self.settlements = Settlements(session)
        self.claims = Claims(
            session, self.settlements, Sweeper(session), Retirement(session) if layout.consumers else None
        )
        self.failed = FailedStore(session)
        self.desk = Desk(session)
        self.keeping = Keeping(session)
        self.listing = Listing(session)
        self.unreadable = UnreadableRecords(session)
        self.controls = Controls(session)
        self.composer = Composer(session, layout.capabilities)
        self.timers = Timers(session, layout.capabilities)
