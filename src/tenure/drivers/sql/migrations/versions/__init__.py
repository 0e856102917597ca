"""The versions of the tables, one a file, each from the one before it. One that was released is never changed.

While a migration runs, and for as long as users take to follow, workers of the version before go on: so it adds
(tables, columns that may be left out, indexes) and takes nothing away that they use. What they cannot live with goes
under another table name: then they are refused, and say why, instead of doing harm.

On PostgreSQL each runs in one transaction, on MySQL a half of one may be left behind: every step can be repeated.
"""
