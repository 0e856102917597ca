"""What the user may do: every command that the driver and its scripts need, tried in a form that changes nothing."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, NamedTuple

from tenure.drivers.redis.doctor.contents import known
from tenure.drivers.redis.doctor.facts import Ask, note, serious
from tenure.drivers.redis.keys import Keyspace
from tenure.drivers.redis.scripts import Scripts
from tenure.drivers.redis.trouble import Unloaded
from tenure.errors import OutcomeUnknown, StoreRefused
from tenure.operating import Finding

DIRECT: Final = frozenset({"EVAL", "EVALSHA", "SADD", "SMEMBERS", "HGET", "BLPOP", "GET", "SET", "MGET", "XRANGE"})
"""What the driver sends itself; the rest is called by its scripts, under the same user's rights."""
CONFIRMING: Final[Mapping[int, frozenset[str]]] = {
    2: frozenset({"WAITAOF", "PEXPIRE"}),
    3: frozenset({"WAIT", "PEXPIRE"}),
}
"""What a push of a durability class needs besides."""
MOST_QUEUES: Final = 100
_CALL: Final = re.compile(r"call\('([A-Z]+)'(?:, '(GROUPS|CONSUMERS|CREATE|DELCONSUMER)')?")
_NEVER: Final = "0" * 40


class Form(NamedTuple):
    """A command's arguments; ``{none}`` is a key that never exists, ``{scratch}`` one that is deleted afterwards."""

    arguments: str
    fails: bool = False
    """Refused by its arguments, once the rights were found sufficient."""


FORMS: Final[Mapping[str, Form]] = {
    "EVAL": Form("return 0"),
    "EVALSHA": Form(f"{_NEVER} 0", fails=True),
    "BLPOP": Form("{none} never", fails=True),
    "DEL": Form("{none}"),
    "EXISTS": Form("{none}"),
    "GET": Form("{none}"),
    "HDEL": Form("{none} field"),
    "HEXISTS": Form("{none} field"),
    "HGETALL": Form("{none}"),
    "HGET": Form("{none} field"),
    "HINCRBY": Form("{none} field no-number", fails=True),
    "HKEYS": Form("{none}"),
    "HLEN": Form("{none}"),
    "HMGET": Form("{none} field"),
    "HRANDFIELD": Form("{none} 1"),
    "HSCAN": Form("{none} 0"),
    "HSET": Form("{none} field value odd", fails=True),
    "HSETNX": Form("{scratch} field value"),
    "HSTRLEN": Form("{none} field"),
    "INCR": Form("{scratch}"),
    "INCRBY": Form("{none} no-number", fails=True),
    "LINDEX": Form("{none} 0"),
    "LLEN": Form("{none}"),
    "LPOP": Form("{none}"),
    "LPUSH": Form("{scratch} element"),
    "LRANGE": Form("{none} 0 0"),
    "LREM": Form("{none} 0 element"),
    "LTRIM": Form("{none} 0 -1"),
    "MGET": Form("{none}"),
    "PEXPIRE": Form("{none} 1000"),
    "PTTL": Form("{none}"),
    "RENAME": Form("{none} {scratch}", fails=True),
    "RPUSH": Form("{scratch} element"),
    "SADD": Form("{scratch} member"),
    "SCARD": Form("{none}"),
    "SET": Form("{none} value WRONG", fails=True),
    "SISMEMBER": Form("{none} member"),
    "SMEMBERS": Form("{none}"),
    "SREM": Form("{none} member"),
    "STRLEN": Form("{none}"),
    "TIME": Form(""),
    "TYPE": Form("{none}"),
    "UNLINK": Form("{none}"),
    "WAIT": Form("0 1"),
    "WAITAOF": Form("0 0 1"),
    "XACK": Form("{none} group 0-1"),
    "XADD": Form("{none} no-id field value", fails=True),
    "XDEL": Form("{none} 0-1"),
    "XGROUP CREATE": Form("{none} group 0", fails=True),
    "XGROUP DELCONSUMER": Form("{none} group consumer", fails=True),
    "XINFO CONSUMERS": Form("{none} group", fails=True),
    "XINFO GROUPS": Form("{none}", fails=True),
    "XLEN": Form("{none}"),
    "XPENDING": Form("{none} group", fails=True),
    "XRANGE": Form("{none} - + COUNT 1"),
    "XREADGROUP": Form("GROUP group consumer COUNT 1 STREAMS {none} >", fails=True),
    "XREVRANGE": Form("{none} + - COUNT 1"),
    "ZADD": Form("{none} XX 1 member"),
    "ZCARD": Form("{none}"),
    "ZCOUNT": Form("{none} -inf +inf"),
    "ZMSCORE": Form("{none} member"),
    "ZPOPMIN": Form("{none}"),
    "ZRANGE": Form("{none} 0 0"),
    "ZRANGEBYSCORE": Form("{none} -inf +inf"),
    "ZRANK": Form("{none} member"),
    "ZREM": Form("{none} member"),
    "ZREMRANGEBYRANK": Form("{none} 0 0"),
    "ZREMRANGEBYSCORE": Form("{none} 0 0"),
    "ZREVRANGE": Form("{none} 0 0"),
    "ZREVRANGEBYSCORE": Form("{none} +inf -inf LIMIT 0 1"),
    "ZSCAN": Form("{none} 0"),
    "ZSCORE": Form("{none} member"),
}


def needed(scripts: Scripts, durability: int = 1) -> list[str]:
    """Return the commands that a user needs, sorted: those of the scripts as they are, and the driver's own."""
    sources = (scripts[name].source.decode() for name in scripts.names)
    called = {" ".join(filter(None, words)) for source in sources for words in _CALL.findall(source)}
    return sorted(called | DIRECT | CONFIRMING.get(durability, frozenset()))


async def check(ask: Ask, keyspace: Keyspace, scripts: Scripts, durability: int) -> AsyncIterator[Finding]:
    """Try each command on a key of ours that never exists, and each family of keys with one that reads and writes."""
    queues = await known(ask, keyspace) or ["default"]
    forbidden: list[str] = []
    unknown: list[str] = []
    keyed = 0
    for command in needed(scripts, durability):
        form = FORMS.get(command)
        if form is None:
            yield note(
                "rights", f"{command} was not tried", "its right is not known", "report it: a gap of the doctor's"
            )
            continue
        code = await _tried(ask, keyspace, queues[0], command, form)
        if code == "NOPERM":
            forbidden.append(command)
        elif code == "ERR" and not form.fails and command != "WAITAOF":  # what stands in for it is judged elsewhere
            unknown.append(command)
        keyed += "{" in form.arguments
    if len([command for command in forbidden if "{" in FORMS[command].arguments]) == keyed:
        # All that name a key: then it is the key.
        forbidden = [command for command in forbidden if "{" not in FORMS[command].arguments]
    async for finding in _families(ask, keyspace, queues):
        yield finding
    for finding in _lacking(forbidden, unknown):
        yield finding


async def _tried(ask: Ask, keyspace: Keyspace, queue: str, command: str, form: Form) -> str:
    """Return the code of the refusal, or ''."""
    keys = keyspace.queue(queue)
    named = {"{none}": keys.named("none"), "{scratch}": keys.named("doctor")}
    words = [form.arguments, "0"] if command == "EVAL" else form.arguments.split()
    try:
        await ask(*command.split(), *(named.get(word, word) for word in words), key=named["{none}"])
    except StoreRefused as refusal:
        return refusal.code
    except OutcomeUnknown as unknown:
        if isinstance(unknown.__cause__, Unloaded):
            return ""  # the server knows no such script, and so has looked for it
        raise
    if "{scratch}" in words:
        await ask(b"DEL", keys.named("doctor"))
    return ""


async def _families(ask: Ask, keyspace: Keyspace, queues: Sequence[str]) -> AsyncIterator[Finding]:
    missing = [
        f"~{keys.named('*').decode()}"
        for keys in map(keyspace.queue, queues[:MOST_QUEUES])
        if await _closed(ask, b"HLEN", keys.named("jobs")) and await _closed(ask, b"HDEL", keys.named("none"), b"field")
    ]
    if await _closed(ask, b"SMEMBERS", keyspace.queues):
        missing.append(f"~{keyspace.queues.decode()}")
    if missing:
        yield serious(
            "rights",
            f"this user may not touch the keys {' '.join(missing)}",
            "nothing can be pushed to these queues, nor claimed from them",
            "grant the patterns (ACL SETUSER … ~pattern), or all of docs/redis.md's least set",
        )


async def _closed(ask: Ask, *command: bytes) -> bool:
    try:
        await ask(*command)
    except StoreRefused as refusal:
        return refusal.code == "NOPERM"
    return False


def _lacking(forbidden: Sequence[str], unknown: Sequence[str]) -> list[Finding]:
    found: list[Finding] = []
    if forbidden:
        found.append(
            serious(
                "rights",
                f"this user may not call {', '.join(sorted(forbidden))}",
                "calls are refused (NOPERM), or a script breaks off in the middle",
                "grant them (ACL SETUSER … "
                + " ".join(f"+{name.lower().replace(' ', '|')}" for name in sorted(forbidden))
                + ")",
            )
        )
    if "EVAL" in unknown or "EVALSHA" in unknown:
        found.append(
            serious(
                "scripts",
                "the server runs no scripts",
                "nothing works: every step on a queue is a script",
                "use a server with EVAL and EVALSHA that were not renamed or disabled",
            )
        )
    elif unknown:
        found.append(
            serious(
                "rights",
                f"the server does not know {', '.join(sorted(unknown))} (too old, or renamed)",
                "calls that need them are refused",
                "use Redis 6.2 or newer, or Valkey, and rename none of its commands",
            )
        )
    return found
