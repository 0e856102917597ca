"""Every behaviour of the contract suite, on every store of this project."""

from tenure.testing.contract import behaviours

globals().update(behaviours())
