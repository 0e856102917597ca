"""Jobs in a database server, shared by the processes of many hosts: PostgreSQL, MySQL, MariaDB.

A round trip costs fifty times what a statement does, so a transition is a few statements over many rows, where the
SQLite driver runs one for each row. ``statements`` holds every text, written once where the databases agree;
``transitions`` what happens inside a transaction; ``session`` one connection, and what becomes of a transaction whose
end nobody told; ``postgresql`` and ``mysql`` the client libraries and what is particular to each.
"""
