"""Schedules of an application: defined in code, or stored, paused and removed at run time."""

from tenure.scheduling.decorators import Scheduled
from tenure.scheduling.info import ScheduleInfo
from tenure.scheduling.scheduling import CodeSchedule, Scheduling
from tenure.scheduling.terms import Terms

__all__ = ["CodeSchedule", "ScheduleInfo", "Scheduled", "Scheduling", "Terms"]
