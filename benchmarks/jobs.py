"""The jobs that tenure's worker runs in the benchmarks."""

import os

from benchmarks.record import PATH_KEY, Recorder
from tenure import Tenure

app = Tenure()
recorder = Recorder(os.environ.get(PATH_KEY, os.devnull))


@app.job(name="noop", queue="bench")
async def noop() -> None:
    recorder.write(0.0)


@app.job(name="timed", queue="bench")
async def timed(sent: float) -> None:
    recorder.write(sent)
