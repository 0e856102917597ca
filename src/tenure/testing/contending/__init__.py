"""Contenders: processes, or threads where a store lives in one process, that work on one store at the same time.

Apart from the behaviours, so that a contending process starts without importing a test runner.
"""
