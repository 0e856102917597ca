"""Jobs in one SQLite file, shared by the processes of one host.

``queue`` is the contract; ``transitions`` holds what happens inside a transaction, one module a family; ``statements``
every SQL text; ``session`` one connection and its transactions; ``engine`` the thread that they run on.
"""
