"""``tests.schedule.ticking`` in a process whose wall clock is behind."""

import asyncio
import sys
import time

import time_machine

from tests.schedule import ticking

if __name__ == "__main__":
    behind, *arguments = sys.argv[1:]
    with time_machine.travel(time.time() - float(behind)):
        asyncio.run(ticking.main(*arguments))
