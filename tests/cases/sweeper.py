"""A process that sweeps once and is then about to sweep on: `python -m tests.cases.sweeper URL NAMESPACE`."""

import asyncio
import sys

from tests.worker.program import build


async def main() -> None:
    app = build(*sys.argv[1:])
    await app.queue().claim(["default"], limit=1, lease=60, wait=0)
    sys.stdout.write("swept\n")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
