"""Storage layouts behind the ``Queue`` contract, one a package; none knows another."""
