"""A process that fires the schedules of a store, and says when it has begun to."""

import asyncio
import logging
import signal
import sys

from tenure import Tenure
from tenure.schedule import Ticker
from tests.support.processes import eventually_async

READY = "it ticks"


async def rounds(ticker: Ticker, number: int) -> None:
    """Return when it has looked so often."""

    async def made() -> bool:
        return ticker.rounds >= number

    await eventually_async(made, 30)


async def tell(ticker: Ticker) -> None:
    await rounds(ticker, 2)
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
