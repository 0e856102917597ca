"""The examples are found as they are written, and a wrong one fails."""

from pathlib import Path

import pytest

from tests.docs.snippets import Snippet, commands, snippets
from tests.docs.test_examples import environment, try_out

TEXT = """
Before.

```python
# shop.py
price = 3
```

<!-- not run: it needs a cluster -->
```sh
tenure worker
```

1. In a list:

   <!-- with: valkey -->

   ```console
   $ python -c 'import shop'
   3
   $ pip install tenure
   $ tenure push \\
       a
   ```

```text
make nothing of it
```
"""


def test_blocks_are_found_with_their_remarks() -> None:
    first, second, third, fourth = snippets(TEXT)
    assert first == Snippet(4, "python", "# shop.py\nprice = 3\n")
    assert first.file_name == "shop.py"
    assert second.not_run == "it needs a cluster"
    assert (third.server, third.not_run) == ("valkey", None)
    assert commands(third) == ["python -c 'import shop'", "tenure push      a"]
    assert fourth.language == "text"


def test_an_unclosed_block_is_an_error() -> None:
    with pytest.raises(ValueError, match="begins in line 1 does not end"):
        snippets("```python\n1")


def test_later_examples_see_earlier_files(tmp_path: Path) -> None:
    try_out(Snippet(1, "python", "# shop.py\nprice = 3\n"), tmp_path, environment(tmp_path))
    try_out(Snippet(5, "sh", "python -c 'import shop; assert shop.price == 3'\n"), tmp_path, environment(tmp_path))


@pytest.mark.parametrize(
    "snippet",
    [
        Snippet(1, "python", "assert False\n"),
        Snippet(1, "sh", "python -c 'raise SystemExit(3)'\n"),
        Snippet(1, "console", "$ make no-such-target\n"),
    ],
)
def test_a_wrong_example_fails(snippet: Snippet, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ended with"):
        try_out(snippet, tmp_path, environment(tmp_path))
