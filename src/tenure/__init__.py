"""Background jobs that are leased, never owned."""

from tenure.app import Tenure
from tenure.call import Call
from tenure.compositions import CompositionState, CompositionStatus
from tenure.context import Current, current
from tenure.correlation import correlated, correlation_id
from tenure.errors import (
    CompositionIncomplete,
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
from tenure.flow import Batch, Chain, Composition, CompositionHandle, Member, Workflow, WorkflowStep
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
    "Batch",
    "Call",
    "Cancelled",
    "Chain",
    "Composition",
    "CompositionHandle",
    "CompositionIncomplete",
    "CompositionState",
    "CompositionStatus",
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
    "Member",
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
    "Workflow",
    "WorkflowStep",
    "WrongContext",
    "correlated",
    "correlation_id",
    "current",
]
