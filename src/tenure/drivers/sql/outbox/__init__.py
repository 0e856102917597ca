"""Jobs for other stores, kept in a database until they can be moved on.

``writing`` adds rows by callers' connections, ``moving`` is how they leave, ``boxes`` an opened outbox; ``servers`` and
``files`` are what database servers and SQLite need for it.
"""

from tenure.drivers.sql.outbox.boxes import Box
from tenure.drivers.sql.outbox.lines import Line, Sending, Waiting
from tenure.drivers.sql.outbox.opening import box_of, writer_of
from tenure.drivers.sql.outbox.writing import Writer

__all__ = ["Box", "Line", "Sending", "Waiting", "Writer", "box_of", "writer_of"]
