"""The jobs that tenure's worker runs in the benchmarks."""

import asyncio
import os
from typing import Final

from benchmarks.record import PATH_KEY, Recorder
from tenure import Tenure

SLOW_SECONDS: Final = 0.05

app = Tenure()
recorder = Recorder(os.environ.get(PATH_KEY, os.devnull))


@app.job(name="noop", queue="bench")
async def noop() -> None:
    recorder.write(0.0)


@app.job(name="threaded", queue="bench")
def threaded() -> None:
    recorder.write(0.0)


@app.job(name="timed", queue="bench")
async def timed(sent: float) -> None:
    recorder.write(sent)


@app.job(name="slow", queue="bench")
async def slow(number: int) -> None:
    recorder.began(number)
    await asyncio.sleep(SLOW_SECONDS)
    recorder.ended(number)
