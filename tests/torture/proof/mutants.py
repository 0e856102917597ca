"""Defects that queues have had, each as an edit of a script or a statement: the check must find every one."""

from collections.abc import Mapping
from dataclasses import dataclass

from tenure.drivers.redis.scripts import packaged
from tests.redis.mutations import WITHOUT_LIVES, WITHOUT_TOKENS


@dataclass(frozen=True)
class Defect:
    """One text of a driver in which ``old`` is replaced by ``new``, once for each pair."""

    name: str
    text: str
    edits: tuple[tuple[str, str], ...]
    breaks: frozenset[str]
    """The invariants of which one at least is found to be broken; none: nothing drains, and so nothing is known."""

    def of(self, source: str) -> str:
        """Return the changed text; fail loudly when it is no longer the text that this defect was made for."""
        for old, new in self.edits:
            assert source.count(old) == 1, f"{self.text} holds {old!r} {source.count(old)} times: renew {self.name!r}"
            source = source.replace(old, new)
        return source


def defect(name: str, text: str, *edits: tuple[str, str], breaks: str) -> Defect:
    return Defect(name, text, edits, frozenset(breaks.split()))


LAPSED = "local lapsed = call('ZRANGEBYSCORE', leased, '-inf', decimal(now), 'LIMIT', 0, 100)"
WITH_KEYS = """local lapsed = {}
for _, held in ipairs(call('ZRANGE', leased, 0, 99)) do
  local key = leased .. ':' .. sub(held, 1, find(held, '|', 1, true) - 1)
  if call('EXISTS', key) == 0 then lapsed[#lapsed + 1] = held end
end"""
GRANT = "  call('ZADD', leased, unpack(scored))"
GRANT_WITH_KEYS = GRANT + "\n  for i = 1, got do call('SET', leased .. ':' .. moved_ids[i], '1', 'PX', lease) end"
DELAYED = "local due = call('ZRANGEBYSCORE', delayed, '-inf', decimal(now), 'LIMIT', 0, 100)"
ALL_LAPSED, ALL_DUE = (text.replace("decimal(now)", "'+inf'") for text in (LAPSED, DELAYED))
FENCE = "if fence and (tonumber(fence) or 0) >= micros then fence = plus(fence, 1) else fence = decimal(micros) end"

SCRIPTS = [
    defect(
        "settles without the token", "settle",
        ("local scores = call('ZMSCORE', leased, unpack(members))",
         WITHOUT_TOKENS + "local scores = without_tokens(members)"),
        breaks="I4",
    ),
    defect(
        "settles whatever is in the state", "settle",
        ("local scores = call('ZMSCORE', leased, unpack(members))",
         WITHOUT_LIVES + "local scores = without_tokens(members)"),
        breaks="I4",
    ),
    defect("rescues by id, whatever its lease", "claim", (LAPSED, ALL_LAPSED), breaks="I3"),
    defect("does not look whether it is due", "claim", (DELAYED, ALL_DUE), breaks="I9"),
    defect("keeps what runs when it ends", "settle", ("  call('HDEL', running, unpack(ids))\n", ""), breaks="I7"),
    defect(
        "acquires when it renews", "renew",
        ("local scores = call('ZMSCORE', leased, unpack(ARGV))",
         "for i = 1, #ARGV do call('ZADD', leased, 'NX', decimal(later), ARGV[i]) end\n"
         "local scores = call('ZMSCORE', leased, unpack(ARGV))"),
        breaks="I3 I4",
    ),
    defect(
        "counts the attempt when it fails", "claim",
        ("first = '|1|0|0'", "first = '|0|0|0'"), ("deliveries = deliveries + 1", "deliveries = deliveries + 0"),
        breaks="I5",
    ),
    defect("leases by keys that expire", "claim", (LAPSED, WITH_KEYS), (GRANT, GRANT_WITH_KEYS), breaks="I3"),
    defect(
        "repeats without the call's number", "include/numbered",
        ("if number == last then return 'repeated', sub(kept, bar + 1) end", ""),
        breaks="I4",
    ),
    defect(
        "has members without incarnation", "claim",
        ("if sub(record, 1, #inc + 1) == inc .. '|' then", "if true then"),
        breaks="I6",
    ),
    defect(
        "sweeps under a lock that its holder never opens", "claim",
        ("if #lapsed > 0 then\n  local ids, fields, left, seen",
         "if #lapsed > 0 and call('SET', leased .. ':lock', '1', 'NX') then\n  local ids, fields, left, seen"),
        breaks="",
    ),
    defect(
        "copies what is due and does not delete it", "claim",
        ("if #due > 0 then call('ZREMRANGEBYRANK', delayed, 0, #due - 1) end", ""),
        breaks="I7",
    ),
    defect("begins its fences again", "claim", (FENCE, "fence = '1'"), breaks="I3"),
    defect("gives a fence twice", "claim", (FENCE, "fence = fence or decimal(micros)"), breaks="I3"),
    defect(
        "loses what is given back", "settle",
        ("  call('HSET', jobs, unpack(fields))\n  if #suspected", "  if #suspected"),
        breaks="I1 I4 I7",
    ),
    defect("loses what is pushed", "include/storing", ("  call('HSET', jobs, unpack(fields))\n", ""), breaks="I1"),
    defect("makes an id twice", "include/storing", ("if waiting[i] or held[i] or", "if"), breaks="I2"),
    defect(
        "does not count a lapse", "claim",
        ("decimal(crashes + 1)", "decimal(crashes + 0)"),
        breaks="I5",
    ),
    defect("counts the end of a member twice", "include/flows", ("c[how] = c[how] + n", "c[how] = c[how] + 2 * n"),
           breaks="I8"),
    defect("tells the ends of a batch twice", "settle", ("runs[k].of, runs[k].n,", "runs[k].of, 2 * runs[k].n,"),
           breaks="I8"),
    defect(
        "lets the next begin when one is given back", "settle",
        ("if how and flow and rest ~= '' then flow.ended(rest, how, result)",
         "if (how or verb == 'r') and flow and rest ~= '' then flow.ended(rest, how or 's', result)"),
        breaks="I8",
    ),
    defect("opens a gate at the first end", "include/releasing",
           ("if count < tonumber(needs) then\n    partly", "if count < 1 then\n    partly"), breaks="I8"),
    defect("forgets that a member failed", "include/releasing",
           ("count + so_far, bad or worse == '1'", "count + so_far, bad"), breaks="I8"),
    defect("never begins callbacks", "include/releasing", ("local runs = when == 'a'", "local runs = false"),
           breaks="I8"),
    defect("does not free a text", "include/unlocking", ("if text and call(", "if false and call("), breaks="I9"),
    defect("does not look who has a text", "include/storing",
           ("text and (texts[text] or holder_of(text))", "nil"), breaks="I9"),
]  # fmt: skip

STATEMENTS = [
    defect("finishes without the token", "FINISH", ("AND token = ?", "AND (token = ? OR 1)"), breaks="I4"),
    defect("renews without the token", "RENEW", ("AND token = ?", "AND (token = ? OR 1)"), breaks="I4"),
    defect("fails without the token", "FAIL", ("AND token = ?", "AND (token = ? OR 1)"), breaks="I4"),
    defect("releases without the token", "RELEASE", ("AND token = ?", "AND (token = ? OR 1)"), breaks="I4"),
    defect("rescues whatever is leased", "LAPSED", ("rank <= :now", "(rank <= :now OR 1)"), breaks="I3"),
    defect("does not look whether it is due", "DUE", ("rank <= :now", "(rank <= :now OR 1)"), breaks="I9"),
    defect("counts apart from the rows", "COUNT", ("leased = leased + ?", "leased = leased + abs(?)"), breaks="I7"),
    defect(
        "counts the attempt when it fails",
        "LEASE",
        ("deliveries = deliveries + 1", "deliveries = deliveries"),
        breaks="I5",
    ),
    defect("does not count a lapse", "RECOVER", ("crashes = crashes + 1", "crashes = crashes"), breaks="I4 I5"),
    defect("begins its fences again", "SET_FENCE", ("fence = ?", "fence = min(1, ?)"), breaks="I3"),
    defect("keeps the text of what failed", "FAIL", ("locked = NULL,", "locked = locked,"), breaks="I9"),
]
COMPOSED = [
    defect("opens a gate too early", "CHANGE", ("needs = ?", "needs = max(1, ? - 1)"), breaks="I8"),
    defect("counts what failed twice", "SAVE", ("failed = :failed", "failed = 2 * :failed"), breaks="I8"),
]  # fmt: skip


def mutated(one: Defect) -> Mapping[str, str]:
    """Return the sources of the scripts with this defect."""
    sources = packaged()
    return {**sources, one.text: one.of(sources[one.text])}
