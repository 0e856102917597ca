"""Pushes that are part of a SQLAlchemy transaction, or follow it: connections and sessions, sync and async.

``callers`` reads what a push was given, ``blocks`` what ``current().transaction()`` was; ``statements`` runs tenure's
texts on the caller's connection; ``pending`` keeps what follows a commit, ``sessions`` and ``connections`` tell it of
commits, rollbacks and savepoints.
"""

from tenure.ext.sqlalchemy.blocks import begin
from tenure.ext.sqlalchemy.callers import enlist

__all__ = ["begin", "enlist"]
