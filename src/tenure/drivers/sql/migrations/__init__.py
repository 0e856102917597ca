"""The tables of database servers, brought from one version to the next: what ``tenure migrate`` does.

``running`` looks which version a database has and runs what it lacks; ``postgresql`` and ``mysql`` say how a connection
for that is opened, how others are kept out and how long a lock is waited for; ``env`` is what Alembic runs, and
``versions`` holds the steps. For migrations of one's own: ``metadata``.
"""

from tenure.drivers.sql.migrations.running import Migrations, Standing
from tenure.drivers.sql.server.names import Names
from tenure.drivers.sql.server.tables import metadata

__all__ = ["Migrations", "Names", "Standing", "metadata"]
