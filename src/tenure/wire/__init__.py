"""The wire form of arguments: how values become JSON and, led by annotations alone, values again.

``annotations`` turns an annotation into a ``Form``; the other modules hold the forms. The wire form itself is
documented in ``docs/wire.md``.
"""
