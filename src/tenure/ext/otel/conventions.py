"""The names that spans carry: OpenTelemetry's semantic conventions for messaging, as of their version 1.45.

The conventions are still in development, so every name of theirs stands here and nowhere else.
"""

from typing import Final

SYSTEM: Final = "messaging.system"
OPERATION_NAME: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION_NAME: Final = "messaging.destination.name"
MESSAGE_ID: Final = "messaging.message.id"
MESSAGE_COUNT: Final = "messaging.batch.message_count"
ERROR_TYPE: Final = "error.type"

SEND: Final = "send"
RECEIVE: Final = "receive"
PROCESS: Final = "process"
SETTLE: Final = "settle"

JOB_NAME: Final = "messaging.tenure.job.name"
ATTEMPT: Final = "messaging.tenure.attempt"
DELIVERIES: Final = "messaging.tenure.deliveries"

TENURE: Final = "tenure"
