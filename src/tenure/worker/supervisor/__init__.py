"""The supervisor: a parent that keeps worker processes at work, and never runs a job itself.

::

    supervisor ──▶ crew ──▶ seat ──▶ child ═══ talk ═══ attendance ──▶ recycling    (in the child's process)
                     │        │        ╚══ asking ═══ telling
                     │        └──▶ backoff
                     ├──▶ reports ──▶ tally
                     └──▶ releases ──▶ the store

Each part is a file. A child is a new program, never a fork of this one.
"""

from tenure.worker.supervisor.asking import Told
from tenure.worker.supervisor.attendance import Attendance
from tenure.worker.supervisor.child import Child, ChildState, Launch
from tenure.worker.supervisor.crew import Crew
from tenure.worker.supervisor.recycling import RecycleAt
from tenure.worker.supervisor.rounds import answers, any_ready
from tenure.worker.supervisor.run import Supervisor, run_supervisor
from tenure.worker.supervisor.talk import Ending, Message, Relief, Retire, Started, line_of
from tenure.worker.supervisor.tally import Tally
from tenure.worker.supervisor.telling import Telling

__all__ = [
    "Attendance",
    "Child",
    "ChildState",
    "Crew",
    "Ending",
    "Launch",
    "Message",
    "RecycleAt",
    "Relief",
    "Retire",
    "Started",
    "Supervisor",
    "Tally",
    "Telling",
    "Told",
    "answers",
    "any_ready",
    "line_of",
    "run_supervisor",
]
