"""A process that fires the schedules of a store, and says when it has begun to."""

import asyncio
import logging
import signal
import sys

from tenure import Tenure
from tenure.schedule import Ticker

READY = "it ticks"


async def tell(ticker: Ticker) -> None:
    while ticker.rounds < 2:  # noqa: ASYNC110 - it is a test's program
        await asyncio.sleep(0.01)
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()


async def main(url: str, namespace: str) -> None:
    app = Tenure(url, namespace=namespace)
    ticker = Ticker(app)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ticker.stop)
    running = asyncio.create_task(ticker.run())
    telling = asyncio.create_task(tell(ticker))
    await running
    telling.cancel()
    await app.aclose()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(*sys.argv[1:]))
