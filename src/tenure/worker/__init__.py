"""The worker: claims jobs, runs them, settles them."""

from tenure.worker.judgement import HandlerRaised, ProcessDied
from tenure.worker.options import Ended, ExitReason, WorkerOptions
from tenure.worker.run import run_worker
from tenure.worker.worker import Worker

__all__ = ["Ended", "ExitReason", "HandlerRaised", "ProcessDied", "Worker", "WorkerOptions", "run_worker"]
