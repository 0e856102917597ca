"""Random calls, each compared with the model: the reply, and then everything that is stored.

The seed is in the test's name: a failure is repeated by running that test again.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest
import redis

from tenure.drivers.redis.scripts import packaged
from tests.redis.model import CRASH_LIMIT, Model
from tests.redis.scripted import Scripted, with_set_clock
from tests.support.servers import Server

STEPS = 1500
IDS = [f"id{number}" for number in range(24)]
CASES = {
    *("lapsed", "clock went back", "set aside", "stale", "entry of a job that is gone", "suspect steps over"),
    *("claim of a paused queue", "pruned", "request of a job that was cleared", "old end"),
    *("leased -", "leased s", "leased x", "leased c", "leased e"),
}


class Run:
    """One random history."""

    def __init__(self, queue: Scripted, seed: int) -> None:
        self.queue = queue
        self.dice = random.Random(seed)
        self.model = Model(now=1_000_000)
        self.leases: list[str] = []
        self.last: dict[str, Callable[[int, str], Any]] = {}
        self.replies: dict[str, Any] = {}
        self.numbers = dict.fromkeys("pcdsxnrfoutw", 0)
        queue.set_clock(self.model.now)

    def steps(self, number: int) -> None:
        for _ in range(number):
            self.step()

    def step(self) -> None:
        moves = {
            self.push: 20, self.replace: 5, self.claim: 18, self.settle: 20, self.renew: 5, self.cancel: 7,
            self.clear: 1, self.sweep: 3, self.retry: 4, self.forget: 2, self.clock: 12, self.repeat: 12,
            self.report: 4, self.plant: 1, self.wait: 4, self.pause: 0.5, self.resume: 3, self.prune: 2, self.drop: 1,
            self.forsake: 0.5,
        }  # fmt: skip
        self.dice.choices(list(moves), list(moves.values()))[0]()
        assert self.queue.dump() == self.model.dump()
        counted = self.queue.call("counts")
        assert counted[:6] == self.model.counts()
        assert self.queue.call("states", IDS).decode() == self.model.states(IDS)
        assert self.queue.call("kept", IDS) == self.model.kept.read(IDS, self.model.now)
        state = self.dice.choice(["ready", "delayed", "running"])
        assert self.queue.listed(state, self.dice.randint(1, 5)) == self.model.listed(state)

    def numbered(self, client: str, call: Callable[[int, str], Any], answer: str) -> Any:
        self.numbers[client] += 1
        self.model.clients[client] = f"{self.numbers[client]}|{answer}"
        self.last[client] = call
        self.replies[client] = call(self.numbers[client], "0")
        return self.replies[client]

    def some_ids(self, most: int) -> list[str]:
        return self.dice.choices(IDS, k=self.dice.randint(1, most))

    # ---------------------------------------------------------------------------------------------------- the moves

    def push(self, ids: list[str] | None = None) -> None:
        dice = self.dice
        jobs, arguments = [], []
        for job_id in ids or self.some_ids(3):
            delay, priority = dice.choice([0, 0, dice.randint(1, 30)]), dice.choice([0, 0, 0, -3, 5, 100])
            limit, expires = dice.choice([0, 0, 1, 2, 3]), dice.choice([0, 0, 0, dice.randint(1, 60)])
            keep = dice.choice([0, 0, dice.randint(1, 60)])
            envelope = dice.randbytes(8) + f"\0\n|\n{dice.random()}".encode()
            if dice.random() < 0.4:
                delay = priority = limit = expires = keep = 0
            jobs.append((job_id, delay, priority, limit, expires, keep, envelope))
            plain = not (delay or priority or limit or expires or keep)
            arguments.append((job_id, "" if plain else f"{delay}|{priority}|{limit}|{expires}|{keep}", envelope))
        new = b"0" if self.model.seq else b"1"
        answer = self.model.push(jobs)
        reply = self.numbered("p", lambda number, _: self.queue.push("p", number, *arguments), answer)
        assert reply == [b"done", answer.encode(), new]

    def claim(self) -> None:
        dice = self.dice
        limit, lease, token = dice.randint(1, 6), dice.randint(1, 20), f"T{dice.getrandbits(128):x}"
        client = dice.choice("cd")
        suspects, crash_limit, repeat = (
            dice.random() < 0.6,
            dice.choice([2, CRASH_LIMIT, CRASH_LIMIT]),
            dice.random() < 0.3,
        )
        expected = self.model.claim(limit, lease, token, suspects, crash_limit)
        members = [member.decode() for member in expected[3::2]]
        self.leases += members

        def call(number: int, repeated: str) -> Any:
            return self.queue.claim(
                client, number, limit, lease, token, int(suspects), crash_limit, int(repeat or repeated == "1")
            )

        if members or repeat:
            expected[0] = b"done"
            reply = self.numbered(client, call, " ".join(members))
        else:
            reply = call(self.numbers[client] + 1, "0")
        status, due, more, leftover, marks, aside, *pairs = reply
        assert [status, marks, aside, *pairs] == expected
        assert (more, leftover) == (b"0", self.queue.key(self.model.gone[0]) if self.model.gone else b"")
        deadlines = [job.deadline for job in self.model.running.values()]
        soonest = min([*self.model.delayed.values(), *deadlines], default=None)
        assert due == (b"" if soonest is None else str(max(0, soonest - self.model.now)).encode())

    def some_members(self, most: int) -> list[str]:
        dice = self.dice
        current = [job.member for job in self.model.running.values()]
        members = set()
        for _ in range(dice.randint(1, most)):
            pool = current if current and dice.random() < 0.75 else self.leases[-60:]
            if pool:
                member = dice.choice(pool)
                if dice.random() < 0.1:
                    parts = member.split("|")
                    parts[5] = "forged"
                    member = "|".join(parts)
                members.add(member)
        return sorted(members)

    def settle(self) -> None:
        dice = self.dice
        acks: list[str] = []
        others: list[tuple[str, str, str, str]] = []
        for member in self.some_members(5):
            verb = dice.choice("aaarrfskkd")
            if verb == "a":
                acks.append(member)
            elif verb == "r":
                delay, kind = dice.choice(["0", "0", str(dice.randint(1, 30))]), dice.choice(["", "free", "crashed"])
                others.append((verb, member, delay, kind))
            elif verb == "f":
                reason = dice.choice(["expired", str(dice.random())])
                others.append(("e" if reason == "expired" else "f", member, f'{{"reason":"{reason}"}}', reason))
            else:
                others.append((verb, member, f"{dice.random()}|", dice.choice(["", "none"]) if verb == "k" else ""))
        if acks or others:
            if acks and dice.random() < 0.2:
                acks.append(acks[0])  # the same lease twice in one call: the second is stale
            answer = self.model.settle(acks, others)
            reply = self.numbered("s", lambda number, _: self.queue.settle("s", number, acks, others), answer)
            assert reply == [b"done", answer.encode()]

    def renew(self) -> None:
        if members := self.some_members(4):
            assert self.queue.call("renew", members).decode() == self.model.renew(members)

    def report(self) -> None:
        if members := self.some_members(4):
            told = [(member, f"{self.dice.random()}|note|") for member in members]
            arguments = [part for member, text in told for part in (member, f"p|{member.split('|')[1]}|{text}")]
            reports = [(self.model.held(member), text) for member, text in told]
            assert self.queue.call("report", arguments).decode() == self.model.kept.report(reports)

    def cancel(self, ids: list[str] | None = None) -> None:
        ids = ids or self.some_ids(3)
        answer = self.model.cancel_jobs(ids)
        reply = self.numbered("n", lambda number, _: self.queue.numbered("cancel", "n", number, ids), answer)
        assert reply == [b"done", answer.encode()]

    def replace(self) -> None:
        """A ready job is cancelled and its id pushed again: its old place in the line must not count."""
        ready = [job_id for job_id, job in self.model.waiting.items() if job.delayed_entry not in self.model.delayed]
        if ready:
            job_id = self.dice.choice(ready)
            self.cancel([job_id])
            self.push([job_id])

    def clear(self) -> None:
        leftover = f"gone:x-{self.numbers['x'] + 1}"
        gone = list(self.model.gone)
        number = self.model.clear(leftover)
        if number:
            # Listed by the key's whole name.
            assert self.model.gone == [*gone, leftover]
        reply = self.numbered("x", lambda number, _: self.queue.numbered("clear", "x", number), str(number))
        assert reply == [b"done", str(number).encode()]

    def sweep(self) -> None:
        if self.model.gone:
            name = self.model.gone[0]
            assert self.queue.call("sweep", leftover=name) == self.model.sweep()

    def pick_failed(self) -> list[tuple[str, int]]:
        picked = [
            (job_id, self.model.failed[job_id][0].inc)
            for job_id in self.dice.sample(sorted(self.model.failed), min(2, len(self.model.failed)))
        ]
        return [*((job_id, inc + 1) for job_id, inc in picked[:1]), *picked, ("never", 1)]

    def retry(self) -> None:
        jobs = self.pick_failed()
        arguments = [part for job in jobs for part in job]
        answer = self.model.retry(jobs)
        reply = self.numbered("r", lambda number, _: self.queue.numbered("retry", "r", number, arguments), answer)
        assert reply == [b"done", answer.encode()]

    def forget(self) -> None:
        jobs = self.pick_failed()
        arguments = [part for job in jobs for part in job]
        answer = self.model.forget(jobs)
        reply = self.numbered("f", lambda number, _: self.queue.numbered("forget", "f", number, arguments), answer)
        assert reply == [b"done", answer.encode()]

    def prune(self) -> None:
        age = self.dice.choice([0, 5, 100])
        answer = self.model.prune(age)
        reply = self.numbered("o", lambda number, _: self.queue.numbered("prune", "o", number, [age, ""]), answer)
        assert reply == [b"done", answer.encode()]

    def pause(self) -> None:
        reply = self.numbered("u", lambda number, _: self.queue.numbered("pause", "u", number), self.model.pause())
        assert reply[0] == b"done"

    def resume(self) -> None:
        reply = self.numbered("t", lambda number, _: self.queue.numbered("resume", "t", number), self.model.resume())
        assert reply[0] == b"done"

    def drop(self) -> None:
        """Remove one record that was set aside, and one that is not there."""
        listed = self.queue.call("unreadable", ["", 1000])
        assert listed[1::4] == [record[b"id"] for record in self.model.unreadable]
        assert listed[3::4] == [len(record[b"record"]) for record in self.model.unreadable]
        if listed:
            place = self.dice.randrange(len(listed) // 4)
            del self.model.unreadable[place]
            keys = [listed[4 * place], "1-1", listed[4 * place]]
            reply = self.numbered("w", lambda number, _: self.queue.numbered("drop", "w", number, keys), "ynn")
            assert reply == [b"done", b"ynn"]

    def forsake(self) -> None:
        """A job is to be cancelled, its holder dies, and the queue is cleared before anybody takes the job."""
        if self.model.running:
            job = self.dice.choice(list(self.model.running.values()))
            self.pause()
            self.cancel([job.id])
            self.model.now = max(self.model.now, job.deadline)
            self.queue.set_clock(self.model.now)
            self.claim()
            self.clear()

    def clock(self) -> None:
        dice = self.dice
        self.model.now += -dice.randint(1, 40) if dice.random() < 0.09 else dice.randint(1, 12)
        self.queue.set_clock(self.model.now)

    def plant(self) -> None:
        """Somebody writes a record that is none."""
        job_id = self.dice.choice(IDS)
        if self.model.states([job_id]) == "g":
            record = self.dice.choice(
                [b"", b"no header", b"1|-1|0|0|0|0|0|0\nx", b"1|0|0|0|0|0|0|0x\ny", b"9" * 3000 + b"\n"]
            )
            self.model.planted[job_id] = record
            self.model.ready.append(f"{job_id}|1")
            self.queue.client.hset(self.queue.key("jobs"), job_id, record)
            self.queue.client.rpush(self.queue.key("ready"), f"{job_id}|1")

    def wait(self) -> None:
        """A waiting claim takes the marker."""
        taken = self.queue.client.lpop(self.queue.key("wake"))
        assert (taken is not None) == self.model.awake
        self.model.awake = False

    def repeat(self) -> None:
        """A reply was lost, and the call comes again; or a call of long ago comes again."""
        if not self.last:
            return
        client = self.dice.choice(sorted(self.last))
        number = self.numbers[client]
        if number > 1 and self.dice.random() < 0.3:
            assert self.last[client](number - 1, "1")[0] == b"old"
            return
        reply, first = self.last[client](number, "1"), self.replies[client]
        assert reply[0] == b"repeated"
        if client not in "cd":
            assert reply[1] == first[1]
            return
        held = {job.member.encode() for job in self.model.running.values()}
        pairs = first[6:]
        assert reply[6:] == [
            part for place in range(0, len(pairs), 2) if pairs[place] in held for part in pairs[place : place + 2]
        ]


@pytest.mark.parametrize("seed", range(2))
def test_any_history_of_calls_leaves_exactly_what_the_model_says(
    client: redis.Redis, namespace: str, seed: int, scale: int
) -> None:
    run = Run(Scripted(client, namespace, with_set_clock()), seed)
    run.steps(STEPS * scale)
    assert run.model.seen.keys() >= CASES
    fences: dict[str, int] = {}
    for member in run.leases:
        job_id, fence = member.split("|")[0], int(member.split("|")[6])
        assert fence > fences.get(job_id, 0)
        fences[job_id] = fence


# Each is a script with one of its guards taken out.
MUTANTS = [
    ("include/storing", "or seen[id] then", "then"),
    ("include/storing", "waiting[i] or held[i] or", "waiting[i] or"),
    ("include/storing", "or soonest < looked.first then", "then"),
    ("claim", "elseif inc == incs[i] then", "else"),
    ("claim", "if sub(record, 1, #inc + 1) == inc .. '|' then member", "if true then member"),
    ("claim", "and (took_suspect or not suspect_allowed) then", "and false then"),
    ("claim", "deliveries = deliveries + 1\n", "deliveries = deliveries + 0\n"),
    ("claim", "crashes = decimal(crashes + 1)", "crashes = decimal(crashes + 0)"),
    ("claim", "if expiry > 0 and expiry <= now then return 'e' end", ""),
    ("claim", "if far[1] and tonumber(far[2]) > allowed(far[1]) then", "if false then"),
    ("claim", "fence = plus(fence, 1)", "fence = decimal(micros)"),
    ("claim", "if scores[i] and records[i] then", "if records[i] then"),
    ("settle", "if scores[i] and not seen[member] then", "if scores[i] then"),
    ("settle", "if requests then call('HDEL', cancel, unpack(ids)) end", ""),
    ("cancel", "call('ZREM', delayed, delayed_member(id, inc, priority))", ""),
    ("clear", "call('UNLINK', ready, beside, delayed, suspects)", "call('UNLINK', ready, delayed, suspects)"),
    ("sweep", "if inc and call('HGET', cancel, id) == inc then", "if false then"),
    ("sweep", "if inc and call('HGET', cancel, id) == inc then", "if inc then"),
    ("claim", "if shut then want = 0 end", ""),
    ("claim", "if not shut and (left or", "if (left or"),
    ("resume", "if answer == 'y' then wake_up(wake) end", ""),
    ("prune", "call('ZREM', failed_at, unpack(ids))", ""),
    ("include/listing", "(not inc or inc == incs[i])", "true"),
    ("retry", "local envelope = inc == ARGV[2 * i + 3] and", "local envelope ="),
    ("forget", "and sub(records[i], 1, #mark) == mark and", "and"),
    ("renew", "if scores[i] then", "if true then"),
    ("include/storing", "call('HDEL', kept, unpack(fresh))", ""),
    ("include/storing", "call('ZREM', kept_at, unpack(fresh))", ""),
    ("retry", "call('HDEL', kept, unpack(done))", ""),
    ("claim", "if any_kept then call('HDEL', kept, unpack(left)) end", ""),
    ("claim", "if any_kept then forget_old(kept, kept_at) end", ""),
    ("settle", "call('HDEL', kept, unpack(ids))", ""),
    ("report", "if scores[i] then", "if true then"),
    ("states", "tonumber(untils[i]) > now", "true"),
    ("include/numbered", "if number == last then", "if number == last and false then"),
    ("include/numbered", "or number < last then", "or false then"),
]


@pytest.mark.parametrize(("script", "guard", "instead"), MUTANTS)
def test_the_model_notices_a_script_without_one_of_its_guards(
    valkey: Server, namespace: str, script: str, guard: str, instead: str
) -> None:
    source = packaged()[script]
    assert source.count(guard) == 1
    queue = with_set_clock(**{script: source.replace(guard, instead)})
    with redis.Redis(unix_socket_path=valkey.socket, protocol=2) as client:
        run = Run(Scripted(client, namespace, queue), seed=12)
        with pytest.raises((AssertionError, redis.ResponseError)):
            run.steps(4000)
        client.unlink(*client.scan_iter(match=f"*{namespace}*", count=1000))
