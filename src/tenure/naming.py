"""Names and ids: what may be one, and how a new one is made.

An allow-list, applied before anything is sent: every name ends up in keys, labels and log lines.
"""

import hashlib
import os
import re
import secrets
import time
from typing import Any

from tenure.errors import InvalidOption

_QUEUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_JOB_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_HOLDER = re.compile(r"[A-Za-z0-9_-]{8,32}", re.ASCII)
_JOB_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,254}", re.ASCII)


def check_queue(name: Any) -> str:
    """Return the queue's name, or raise ``InvalidOption``."""
    if not isinstance(name, str) or not _QUEUE.fullmatch(name):
        raise InvalidOption(
            f"queue {shown(name)} is not a queue name: 1 to 128 of letters, digits, '.', '_' and '-', "
            "a letter or digit first"
        )
    return name


def check_job_id(job_id: Any) -> str:
    """Return the job's id, or raise ``InvalidOption``."""
    if not isinstance(job_id, str) or not _JOB_ID.fullmatch(job_id):
        raise InvalidOption(f"id {shown(job_id)} is not a job id: 1 to 64 of letters, digits, '.', '_' and '-'")
    return job_id


def check_namespace(name: Any) -> str:
    """Return the namespace, or raise ``InvalidOption``. The rule is that of queue names."""
    if not isinstance(name, str) or not _QUEUE.fullmatch(name):
        raise InvalidOption(f"namespace {shown(name)} is not a namespace: the rule is that of queue names")
    return name


def check_job_name(name: Any) -> str:
    """Return the job's name, or raise ``InvalidOption``."""
    if not isinstance(name, str) or not _JOB_NAME.fullmatch(name):
        raise InvalidOption(
            f"name {shown(name)} is not a job name: 1 to 255 of letters, digits, '_', '.', ':' and '-', "
            "a letter or '_' first"
        )
    return name


def check_schedule(name: Any) -> str:
    """Return the schedule's name, or raise ``InvalidOption``. The rule is that of job names."""
    if not isinstance(name, str) or not _JOB_NAME.fullmatch(name):
        raise InvalidOption(f"name {shown(name)} is not the name of a schedule: the rule is that of job names")
    return name


def check_holder(holder: Any) -> str:
    """Return the holder's name, or raise ``InvalidOption``."""
    if not isinstance(holder, str) or not _HOLDER.fullmatch(holder):
        raise InvalidOption(f"holder {shown(holder)} is not a holder: 8 to 32 of letters, digits, '_' and '-'")
    return holder


def shown(text: object) -> str:
    """Return the text as one short, harmless line, for messages."""
    line = ascii(text)
    return line if len(line) <= 80 else f"{line[:77]}..."


def new_job_id() -> str:
    """Return a new UUIDv7 (RFC 9562): unique everywhere, sorted by time within a millisecond."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def derived_id(job_id: str, part: str) -> str:
    """Return the id of a job that belongs to another one: always the same, so that a repeated push of it is held."""
    derived = f"{job_id}.{part}"
    return derived if _JOB_ID.fullmatch(derived) else hashlib.sha256(derived.encode()).hexdigest()[:32]


def new_token(holder: str | None = None) -> str:
    """Return 128 random bits, written so that they fit into any key or member; of a holder: its name and 64 bits."""
    return secrets.token_urlsafe(16) if holder is None else f"{held_prefix(holder)}{secrets.token_urlsafe(8)}"


def new_holder() -> str:
    """Return 64 random bits, as the name of a process that claims."""
    return secrets.token_hex(8)


def held_prefix(holder: str) -> str:
    """Return what the tokens of this holder begin with, and those of no other: its name never has a point in it."""
    return f"{holder}."
