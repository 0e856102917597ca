"""Background jobs that are leased, never owned."""

from tenure.app import Tenure
from tenure.call import Call
from tenure.context import Current, current
from tenure.correlation import correlated, correlation_id
from tenure.errors import (
    ConfigurationError,
    ConnectionFailed,
    InvalidOption,
    JobFailed,
    JobGone,
    NotEncodable,
    NotRegistered,
    NotSupported,
    OutcomeUnknown,
    PayloadTooLarge,
    PushIncomplete,
    Refused,
    ResultUnavailable,
    StaleLease,
    StoreError,
    StoreRefused,
    TenureError,
    Undecodable,
    WrongContext,
)
from tenure.handle import JobHandle
from tenure.injection import Injected
from tenure.job import AsyncJob, Job, SyncJob
from tenure.options import AppOptions, JobOptions, PushOptions
from tenure.outcomes import Discard, GiveUp, Retry, Snooze
from tenure.queue import Cancelled, Counts, JobState
from tenure.results import Progress
from tenure.retry import Backoff
from tenure.sensitive import Sensitive

__all__ = [
    "AppOptions",
    "AsyncJob",
    "Backoff",
    "Call",
    "Cancelled",
    "ConfigurationError",
    "ConnectionFailed",
    "Counts",
    "Current",
    "Discard",
    "GiveUp",
    "Injected",
    "InvalidOption",
    "Job",
    "JobFailed",
    "JobGone",
    "JobHandle",
    "JobOptions",
    "JobState",
    "NotEncodable",
    "NotRegistered",
    "NotSupported",
    "OutcomeUnknown",
    "PayloadTooLarge",
    "Progress",
    "PushIncomplete",
    "PushOptions",
    "Refused",
    "ResultUnavailable",
    "Retry",
    "Sensitive",
    "Snooze",
    "StaleLease",
    "StoreError",
    "StoreRefused",
    "SyncJob",
    "Tenure",
    "TenureError",
    "Undecodable",
    "WrongContext",
    "correlated",
    "correlation_id",
    "current",
]
