"""Jobs in processes of their own: the worker's side is ``pool`` and ``process``, the child's ``child`` and ``running``.

A child is started by exec, never forked. The two talk in frames of data over a socket pair; nothing is pickled.
"""
