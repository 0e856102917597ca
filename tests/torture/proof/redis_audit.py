"""The audit of a queue on Redis: each script tells, in the step that it is, what it wrote.

A copy of every packaged script runs inside a wrapper that notes its writing commands and adds them, at its end, to one
stream beside the queue's keys. What is noted are commands, not the script's own answer: a script that does something
else than it says is found out.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import redis

from tenure.drivers.redis.scripts import Line, Scripts, packaged
from tenure.testing.history import Audit, Dump

WRAPPED = """
local noted, real = {}, redis
local WRITES = {HSET=1, HDEL=1, ZADD=1, ZREM=1, XADD=1, RENAME=1, DEL=1}
local function net(text)
  text = tostring(text)
  if #text > 250 then text = string.sub(text, 1, 250) end
  return #text .. ':' .. text
end
local redis = setmetatable({ call = function(command, ...)
  local reply = real.call(command, ...)
  if WRITES[command] then
    local words = { select('#', ...) + 1 .. ' ', net(command) }
    for i = 1, select('#', ...) do words[i + 2] = net((select(i, ...))) end
    noted[#noted + 1] = table.concat(words)
  end
  return reply
end }, { __index = real })
local function body()
"""
TOLD = """
end
local reply = body()
if #noted > 0 then
  local time, named = real.call('TIME'), {}
  if %(named)s then for i = 1, #ARGV do named[i] = net(ARGV[i]) end end
  real.call('XADD', KEYS[#KEYS], '*', 's', '%(name)s', 't', time[1] .. string.rep('0', 6 - #time[2]) .. time[2],
    'w', table.concat(noted), 'a', table.concat(named))
end
return reply
"""
TOLD_OF = {
    *("push", "claim", "settle", "renew", "cancel", "clear", "retry", "forget", "prune"),
    *("start", "grow", "halt", "sweep"),
}
_KEYS = re.compile(r"^(-- KEYS: .*)$", re.MULTILINE)


def instrumented(line: Line = "list", sources: Mapping[str, str] | None = None) -> Scripts:
    """Return the scripts, each inside the wrapper."""
    wrapped = dict(packaged() if sources is None else sources)
    for name in TOLD_OF:
        source = _KEYS.sub(r"\1 audit", wrapped[name], count=1)
        told = TOLD % {"name": name, "named": "true" if name in {"settle", "renew"} else "false"}
        wrapped[name] = source.split("\n", 1)[0] + "\n" + WRAPPED + source.split("\n", 1)[1] + told
    return Scripts(wrapped, line=line)


class Step(NamedTuple):
    """One run of one script: its writing commands, keys by their names."""

    at: int
    script: str
    writes: list[list[str]]
    named: set[str]

    def of(self, command: str, key: str) -> Iterator[list[str]]:
        """Yield the arguments of these commands on this key."""
        for word, where, *arguments in self.writes:
            if word == command and where == key:
                yield arguments


def words(text: str) -> Iterator[str]:
    """Yield the netstrings of a text."""
    place = 0
    while place < len(text):
        colon = text.index(":", place)
        end = colon + 1 + int(text[place:colon])
        yield text[colon + 1 : end]
        place = end


def commands(text: str) -> Iterator[list[str]]:
    place = 0
    while place < len(text):
        space = text.index(" ", place)
        found: list[str] = []
        place_in = space + 1
        for _ in range(int(text[place:space])):
            colon = text.index(":", place_in)
            end = colon + 1 + int(text[place_in:colon])
            found.append(text[colon + 1 : end])
            place_in = end
        place = place_in
        yield found


def steps(client: "redis.Redis", key: str) -> Iterator[Step]:
    """Read the stream, from its start."""
    last = "-"
    while True:
        page: Any = client.xrange(key, last, count=1000)
        for _, fields in page:
            writes = [[one[0], one[1].rpartition("}:")[2], *one[2:]] for one in commands(fields["w"])]
            yield Step(int(fields["t"]), fields["s"], writes, set(words(fields["a"])))
        if len(page) < 1000:
            return
        last = f"({page[-1][0]}"


class Lease(NamedTuple):
    """The parts of a member of ``leased``."""

    id: str
    incarnation: int
    deliveries: int
    free: int
    crashes: int
    token: str
    fence: int


def lease(member: str) -> Lease | None:
    parts = member.split("|")
    if len(parts) != 8 or not all(part.isdigit() for part in (*parts[1:5], parts[6])):
        return None
    numbers = [int(part) for part in parts[1:5]]
    return Lease(parts[0], numbers[0], numbers[1], numbers[2], numbers[3], parts[5], int(parts[6]))


def audit(client: "redis.Redis", namespace: str, queue: str, first: int = 0) -> list[Audit]:
    """Return the transitions of a queue, in order, numbered from ``first``."""
    found: list[Audit] = []
    for step in steps(client, f"{{{namespace}:{queue}}}:audit"):
        for what, job_id, more in transitions(step):
            found.append(Audit(first + len(found), step.at, what, queue, job_id, **more))
    return found


Told = Iterator[tuple[Any, str, dict[str, Any]]]


def transitions(step: Step) -> Told:
    """Yield what a script did to each job."""
    return DECODERS[step.script](step)


def forgotten(step: Step) -> Told:
    for ids in step.of("HDEL", "failed"):
        yield from (("forget", job_id, {}) for job_id in ids)


def cancelled(step: Step) -> Told:
    for job_id, _ in step.of("HSET", "cancel"):
        yield "request", job_id, {}
    for ids in step.of("HDEL", "jobs"):
        yield from (("cancel", job_id, {}) for job_id in ids)
    yield from began(step, "push")


def cleared(step: Step) -> Told:
    if any(step.of("RENAME", "jobs")):
        yield "clear", "", {}


def records(step: Step, key: str) -> dict[str, list[str]]:
    """The headers of the records that were written, by id."""
    found: dict[str, list[str]] = {}
    for pairs in step.of("HSET", key):
        for job_id, record in zip(pairs[::2], pairs[1::2], strict=True):
            found[job_id] = record.split("\n")[0].split("|")
    return found


def due(step: Step) -> dict[str, int]:
    """When the delayed ones are due, by id."""
    return {
        member.partition("|")[0]: int(score) * 1000
        for pairs in step.of("ZADD", "delayed")
        for score, member in zip(pairs[::2], pairs[1::2], strict=True)
    }


def began(step: Step, what: str, but: Sequence[str] = ()) -> Told:
    later = due(step)
    for job_id, header in records(step, "jobs").items():
        if job_id not in but:
            yield what, job_id, {"incarnation": int(header[0]), "until": later.get(job_id)}


def renewed(step: Step, named: set[str] | None) -> Told:
    for arguments in step.of("ZADD", "leased"):
        pairs = arguments[1:] if arguments[0] in {"XX", "NX"} else arguments
        for score, member in zip(pairs[::2], pairs[1::2], strict=True):
            held = lease(member)
            if held is not None:
                told = named is None or member in named
                more = {"token": held.token, "until": int(float(score) * 1000), "named": told}
                yield "renew", held.id, {"incarnation": held.incarnation, **more}


def settled(step: Step) -> Told:
    released, failed, later = records(step, "jobs"), records(step, "failed"), due(step)
    aside = {fields[fields.index("id") + 1] for fields in step.of("XADD", "unreadable")}
    ended: list[str] = []
    for members in step.of("ZREM", "leased"):
        for member in members:
            held = lease(member)
            if held is None:
                continue
            ended.append(held.id)
            more = {"incarnation": held.incarnation, "token": held.token, "named": member in step.named}
            if held.id in aside:
                yield "aside", held.id, more
            elif held.id in failed:
                yield "fail", held.id, more
            elif held.id in released:
                header = released[held.id]
                more |= {"free": int(header[2]), "crashes": int(header[3]), "until": later.get(held.id)}
                yield "release", held.id, more
            else:
                yield "ack", held.id, more
    yield from began(step, "push", but=ended)


def claimed(step: Step) -> Told:
    waits_again = records(step, "jobs")
    lapsed: list[str] = []
    for members in step.of("ZREM", "leased"):
        for member in members:
            held = lease(member)
            if held is not None and held.id in waits_again and held.id not in lapsed:
                lapsed.append(held.id)
                yield "lapse", held.id, {"incarnation": held.incarnation, "token": held.token}
    yield from began(step, "push", but=lapsed)
    for fields in step.of("XADD", "unreadable"):
        yield "aside", fields[fields.index("id") + 1], {}
    for arguments in step.of("ZADD", "leased"):
        if arguments[0] == "XX":  # pulled back, because the clock went back
            pulled = Step(step.at, step.script, [["ZADD", "leased", *arguments]], set())
            yield from renewed(pulled, None)
            continue
        for score, member in zip(arguments[::2], arguments[1::2], strict=True):
            held = lease(member)
            if held is not None:
                more = {name: value for name, value in held._asdict().items() if name != "id"}
                yield "grant", held.id, {**more, "until": int(float(score) * 1000)}


DECODERS: Mapping[str, Callable[[Step], Told]] = {
    "push": partial(began, what="push"),
    "claim": claimed,
    "settle": settled,
    "renew": lambda step: renewed(step, step.named),
    "cancel": cancelled,
    "clear": cleared,
    "retry": partial(began, what="retry"),
    "forget": forgotten,
    "prune": forgotten,
    "start": partial(began, what="push"),
    "grow": partial(began, what="push"),
    "halt": cancelled,
    "sweep": partial(began, what="push"),
}


def dump(client: "redis.Redis", namespace: str, queue: str, counts: Mapping[str, int]) -> Dump:
    """Look at a queue at rest. An entry of a line whose job has gone is dropped by a later claim, and is none."""
    start = f"{{{namespace}:{queue}}}:"
    read: Any = client
    jobs, running, failed = (read.hgetall(f"{start}{name}") for name in ("jobs", "running", "failed"))
    delayed = dict(read.zrange(f"{start}delayed", 0, -1, withscores=True))
    lives = {job_id: record.split("|", 1)[0] for job_id, record in jobs.items()}
    waits_until = [member.split("|")[0] for member in delayed]
    found = {job_id: "delayed" if job_id in set(waits_until) else "ready" for job_id in jobs}
    found |= dict.fromkeys(running, "leased") | dict.fromkeys(failed, "failed")
    aside = [fields["id"] for _, fields in read.xrange(f"{start}unreadable")]
    found |= {f"{job_id}#{number}": "unreadable" for number, job_id in enumerate(aside)}
    entries = line_of(read, start)
    standing = [entry.split("|")[0] for entry in entries if lives.get(entry.split("|")[0]) == entry.split("|")[1]]
    indexes = {
        "the line": standing,
        "delayed": waits_until,
        "leased": [member.split("|")[0] for member in read.zrange(f"{start}leased", 0, -1)],
        "failed:at": read.zrange(f"{start}failed:at", 0, -1),
    }
    needed = {"ready": ["the line"], "delayed": ["delayed"], "leased": ["leased"], "failed": ["failed:at"]}
    drained = not jobs and not running
    leaked = [f"a request to cancel {job_id}" for job_id in read.hkeys(f"{start}cancel") if job_id not in running]
    slots = [f"{text} by {holder.split('|')[0]}" for text, holder in read.hgetall(f"{start}unique").items()]
    return Dump(queue, found, dict(counts), indexes, needed, slots, leaked=leaked, drained=drained)


def line_of(read: Any, start: str) -> list[str]:
    entries: list[str] = list(read.lrange(f"{start}suspects", 0, -1))
    if read.type(f"{start}ready") == "stream":
        leased = {member.rpartition("@")[2].split("|")[0] for member in read.zrange(f"{start}leased", 0, -1)}
        return entries + [fields["j"] for entry, fields in read.xrange(f"{start}ready") if entry not in leased]
    entries += read.lrange(f"{start}ready", 0, -1)
    return entries + [member[17:] for member in read.zrange(f"{start}ready:prio", 0, -1)]
