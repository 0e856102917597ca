"""Firing schedules: any number of processes may do it, and each slot fires once."""

from tenure.schedule.ticker import Ticker

__all__ = ["Ticker"]
