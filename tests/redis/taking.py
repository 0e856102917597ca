"""The model's claim, second half: from the lines into leases."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.redis.model import Model


class Taking:
    """The second half of a claim: from the lines into leases."""

    def __init__(self, model: "Model", limit: int, lease: int, token: str, suspects: bool, crash_limit: int) -> None:
        self.model, self.want, self.lease, self.token = model, limit, lease, token
        self.suspects, self.crash_limit = suspects, crash_limit
        self.fence = max(model.fence + 1, model.now * 1000)
        self.took_suspect = False
        self.marks = ""
        self.members: list[str] = []
        self.pairs: list[bytes] = []
        self.aside: list[bytes] = []
        self.moved: list[str] = []
        self.touched: set[str] = set()

    def run(self) -> int:
        model = self.model
        others, self.want = self.want - 1, 1
        walked = self.walk(model.suspects) if self.suspects and others >= 0 else 0
        model.count("suspects", walked)
        self.want = self.want + others if self.suspects else others + 1
        above = [(score, entry) for score, entry in model.prio if score < 0]
        below = [(score, entry) for score, entry in model.prio if score > 0]
        self.walk_ranked(above)
        model.count("ready", self.walk(model.ready))
        self.walk_ranked(below)
        model.prio = sorted(above + below)
        model.suspects += self.moved
        if self.members:
            model.fence = self.fence
        return walked

    def walk(self, line: list[str]) -> int:
        walked = 0
        while self.want > 0 and walked < len(line):
            # The script reads a window of as many as it wants, and considers all of it.
            window = line[walked : walked + self.want]
            for entry in window:
                self.consider(entry)
            walked += len(window)
        del line[:walked]
        return walked

    def walk_ranked(self, line: list[tuple[int, str]]) -> None:
        entries = [entry[17:] for _, entry in line]
        walked = self.walk(entries)
        del line[:walked]

    def consider(self, entry: str) -> None:
        model = self.model
        job_id = entry.partition("|")[0]
        if job_id in self.touched:
            return
        if job_id in model.planted:
            record = model.planted.pop(job_id)
            model.cancel.pop(job_id, None)
            model.set_aside(job_id, "header", record)
            self.aside.append(job_id.encode())
            return
        job = model.waiting.get(job_id)
        if job is None or job.entry != entry:
            model.note("entry of a job that is gone")
            return
        job.deliveries += 1
        mark = model.judged(job, self.crash_limit)
        job.deliveries -= 1
        self.touched.add(job_id)
        if mark == "s" and (self.took_suspect or not self.suspects):
            model.note("suspect steps over")
            self.moved.append(entry)
            return
        model.note(f"leased {mark}")
        self.took_suspect = self.took_suspect or mark == "s"
        del model.waiting[job_id]
        job.record = job.stored()
        job.deliveries += 1
        counters = f"{job.deliveries}|{job.free}|{job.crashes}"
        job.member = f"{entry}|{counters}|{self.token}|{self.fence}|{self.lease}"
        job.deadline = model.now + self.lease
        model.running[job_id] = job
        self.want -= 1
        self.marks += mark
        self.members.append(job.member)
        self.pairs += [job.member.encode(), job.record]
