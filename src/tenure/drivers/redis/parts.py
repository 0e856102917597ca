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
        self.session: Session = session
        self.pushes: Pushes = Pushes(session, layout.capabilities)
        self.settlements: Settlements = Settlements(session)
        self.claims: Claims = Claims(
            session, self.settlements, Sweeper(session), Retirement(session) if layout.consumers else None
        )
        self.failed: FailedStore = FailedStore(session)
        self.desk: Desk = Desk(session)
        self.keeping: Keeping = Keeping(session)
        self.listing: Listing = Listing(session)
        self.unreadable: UnreadableRecords = UnreadableRecords(session)
        self.controls: Controls = Controls(session)
        self.composer: Composer = Composer(session, layout.capabilities)
        self.timers: Timers = Timers(session, layout.capabilities)
