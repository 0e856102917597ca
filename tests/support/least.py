"""The least rights that the documentation promises to be enough, as the tests of an ACL user grant them."""

import re

from tests.support.servers import ROOT

PAGES = ("docs/redis.md", "docs/configuration.md")
BLOCK = re.compile(r"^```acl\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMESPACE = "shop"


def documented() -> list[str]:
    """Return the words of the documented ACL, without the user's name and password."""
    for page in PAGES:
        path = ROOT / page
        found = BLOCK.search(path.read_text()) if path.exists() else None
        if found:
            text = "\n".join(line.partition("#")[0] for line in found[1].splitlines())
            user, _, *words = text.split()
            assert user == "user"
            return [word for word in words if word != "on" and not word.startswith(">")]
    raise AssertionError(f"no ```acl block in {' or '.join(PAGES)}")


def rules(namespace: str = "t*") -> list[str]:
    """Return the documented rules for a namespace; by default for any that a test may have."""
    return [word.replace(NAMESPACE, namespace) if word.startswith("~") else word for word in documented()]
