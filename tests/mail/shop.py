"""A shop that sends mails, as a worker process imports it. With `TENURE_TEST_HOLD` its handlers end, and the worker
does not come to tell the store: they write that file, and wait.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

from tenure import Current, Tenure

app = Tenure()
HOLD = os.environ.get("TENURE_TEST_HOLD")


@app.middleware
async def held(current: Current, call_next: Any) -> Any:
    value = await call_next()
    if HOLD:
        await asyncio.to_thread(Path(HOLD).write_text, current.id)
        await asyncio.Event().wait()
    return value
