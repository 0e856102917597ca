"""The least rights that the documentation promises to be enough, as the tests of an ACL user grant them."""

import re

from tests.support.servers import ROOT

PAGE = ROOT / "docs/redis.md"
BLOCK = re.compile(r"^```acl\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMESPACE = "shop"


def documented() -> list[str]:
    """Return the words of the documented ACL, without the user's name and password."""
    found = BLOCK.search(PAGE.read_text())
    assert found, f"no ```acl block in {PAGE.name}"
    user, _, *words = found[1].split()
    assert user == "user"
    return [word for word in words if word != "on" and not word.startswith(">")]


def rules(namespace: str = "t*") -> list[str]:
    """Return the documented rules for a namespace; by default for any that a test may have."""
    return [word.replace(NAMESPACE, namespace) if word.startswith("~") else word for word in documented()]
