"""Other job libraries, each by one script that runs in an environment of its own: ``make bench-peers``.

A script knows nothing of tenure but its directory. ``benchmarks.peer.PeerOn`` calls its verbs.
"""
