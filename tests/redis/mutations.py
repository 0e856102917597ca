"""The queue scripts' protections, each as the text without which it is gone, and the behaviour that must notice."""

from functools import partial

from tenure.testing.contract import (
    about_cancelling,
    about_claiming,
    about_clearing,
    about_crashes,
    about_delays,
    about_failing,
    about_leases,
    about_priorities,
    about_pushing,
    about_settling,
    about_unreadable,
)
from tests.contract.mutants import Mutant

# Looks leases up by job and incarnation, whatever their token, as a store without tokens would.
WITHOUT_TOKENS = """
local function without_tokens(members)
  local now_leased, found = {}, {}
  for _, member in ipairs(call('ZRANGE', leased, 0, -1)) do
    now_leased[string.match(member, '^[^|]+|[^|]+')] = member
  end
  for i = 1, #members do
    local member = now_leased[string.match(members[i], '^[^|]+|[^|]+')]
    if member then members[i], found[i] = member, '1' end
  end
  return found
end
"""
# The same, by job alone: whatever its incarnation, too.
WITHOUT_LIVES = WITHOUT_TOKENS.replace("'^[^|]+|[^|]+'", "'^[^|]+'")

A_DELIVERY = about_claiming.test_every_claim_is_a_delivery_with_a_token_of_its_own_and_a_higher_fence
NO_PLACE_OF_THE_PAST = about_cancelling.test_a_job_pushed_after_a_cancel_of_its_id_takes_no_place_of_the_past
WRONG_TOKEN = about_settling.test_a_settlement_with_another_token_is_stale_and_writes_nothing

PUSH = [
    Mutant(
        "takes a waiting id again",
        "include/storing",
        "if waiting[i] or held[i]",
        "if held[i]",
        about_pushing.test_an_id_that_is_ready_is_held_and_nothing_changes,
    ),
    Mutant(
        "takes a running id again", "include/storing", "or held[i] or", "or", about_pushing.test_an_id_that_runs_is_held
    ),
    Mutant(
        "takes a failed id again",
        "include/storing",
        "or ended[i] or",
        "or",
        about_pushing.test_an_id_that_has_failed_is_held,
    ),
    Mutant(
        "takes a repeated id twice",
        "include/storing",
        " or seen[id] then",
        " then",
        about_pushing.test_an_id_repeated_inside_one_push_is_stored_once,
    ),
    Mutant(
        "makes every life the first",
        "include/storing",
        "plus(base, k)",
        "'1'",
        about_pushing.test_an_id_whose_job_is_done_makes_a_new_job,
    ),
    Mutant(
        "forgets the delay",
        "include/storing",
        "if delay ~= '0' then",
        "if false then",
        about_delays.test_a_delayed_job_is_counted_and_not_handed_out,
    ),
    Mutant(
        "turns priorities round",
        "list/line",
        "decimal(-tonumber(ranked[i][2]))",
        "decimal(tonumber(ranked[i][2]))",
        about_priorities.test_a_higher_priority_comes_first,
    ),
]

CLAIM = [
    Mutant("does not count the first attempt", "claim", "first = '|1|0|0'", "first = '|0|0|0'", A_DELIVERY),
    Mutant(
        "does not count attempts", "claim", "deliveries = deliveries + 1", "deliveries = deliveries + 0", A_DELIVERY
    ),
    Mutant(
        "gives the same fence again",
        "claim",
        "if fence and (tonumber(fence) or 0) >= micros then fence = plus(fence, 1) else",
        "if fence then fence = fence else",
        A_DELIVERY,
    ),
    Mutant(
        "takes entries of earlier lives",
        "claim",
        "if sub(record, 1, #inc + 1) == inc .. '|' then",
        "if true then",
        NO_PLACE_OF_THE_PAST,
    ),
    Mutant(
        "hands out before the time",
        "claim",
        "delayed, '-inf', decimal(now)",
        "delayed, '-inf', '+inf'",
        about_delays.test_a_delayed_job_is_counted_and_not_handed_out,
    ),
    Mutant(
        "reclaims before the end",
        "claim",
        "leased, '-inf', decimal(now)",
        "leased, '-inf', '+inf'",
        about_claiming.test_a_leased_job_is_not_handed_out_again,
    ),
    Mutant(
        "never reclaims",
        "claim",
        "leased, '-inf', decimal(now)",
        "leased, '-inf', '-inf'",
        about_leases.test_a_lapsed_lease_is_reclaimed_by_the_next_claim_of_anybody,
    ),
    Mutant(
        "recovers without bound",
        "claim",
        "leased, '-inf', decimal(now), 'LIMIT', 0, 100",
        "leased, '-inf', decimal(now), 'LIMIT', 0, 1000",
        about_leases.test_a_claim_recovers_at_most_a_hundred_lapsed_leases,
    ),
    Mutant(
        "promotes without bound",
        "claim",
        "delayed, '-inf', decimal(now), 'LIMIT', 0, 100",
        "delayed, '-inf', decimal(now), 'LIMIT', 0, 1000",
        about_delays.test_a_claim_promotes_at_most_a_hundred_due_jobs,
    ),
    Mutant(
        "does not count crashes",
        "claim",
        "decimal(crashes + 1)",
        "decimal(crashes + 0)",
        about_crashes.test_lapses_count_as_crashes,
    ),
    Mutant(
        "runs what was to be cancelled",
        "claim",
        "if requested then return 'x' end",
        "",
        partial(about_cancelling.test_a_job_whose_holder_died_after_a_cancel_is_leased_doomed, crash_limit=9),
    ),
    Mutant(
        "runs what crashed too often",
        "claim",
        "if crashes >= limit then return 'c' end",
        "",
        about_crashes.test_a_job_over_its_crash_limit_is_leased_doomed,
    ),
    Mutant(
        "runs what has expired",
        "claim",
        "if expiry > 0 and expiry <= now then return 'e' end",
        "",
        about_crashes.test_an_expired_job_is_leased_doomed,
    ),
    Mutant(
        "delivers without end",
        "claim",
        "if deliveries > 1000 then return 'd' end",
        "",
        about_crashes.test_a_job_that_is_delivered_without_end_is_doomed,
    ),
    Mutant(
        "suspects nobody",
        "claim",
        "if crashes > 0 and crashes == limit - 1 then return 's' end",
        "",
        about_crashes.test_a_job_one_crash_short_of_its_limit_is_a_suspect,
    ),
    Mutant(
        "hands suspects to everybody",
        "claim",
        "if mark == 's' and (took_suspect or not suspect_allowed) then",
        "if false then",
        about_crashes.test_who_is_a_suspect_is_judged_by_the_limit_of_the_claim_for_jobs_that_have_none,
    ),
    Mutant(
        "loses broken records",
        "claim",
        "call('XADD', unreadable, '*', 'id', id, 'reason', reason, 'record', record)",
        "",
        partial(about_unreadable.test_a_broken_record_is_set_aside_by_the_claim_that_meets_it, record=b"junk"),
    ),
    Mutant(
        "never says when the next is due",
        "claim",
        "if next_due < 1e15 then",
        "if false then",
        about_delays.test_a_claim_tells_when_the_next_delayed_job_is_due,
    ),
]

RENEW = [
    Mutant(
        "does not compare tokens",
        "renew",
        "local scores = call('ZMSCORE', leased, unpack(ARGV))",
        WITHOUT_TOKENS + "local scores = without_tokens(ARGV)",
        about_leases.test_a_renewal_with_another_token_is_lost,
    ),
    Mutant(
        "does not compare incarnations",
        "renew",
        "local scores = call('ZMSCORE', leased, unpack(ARGV))",
        WITHOUT_LIVES + "local scores = without_tokens(ARGV)",
        about_settling.test_a_lease_of_the_past_settles_nothing_of_a_job_that_uses_its_id_again,
    ),
    Mutant(
        "acquires",
        "renew",
        "local scores = call('ZMSCORE', leased, unpack(ARGV))",
        "for i = 1, #ARGV do call('ZADD', leased, 'NX', decimal(later), ARGV[i]) end\n"
        "local scores = call('ZMSCORE', leased, unpack(ARGV))",
        about_leases.test_renewing_can_never_acquire,
    ),
    Mutant(
        "does not extend",
        "renew",
        "call('ZADD', leased, 'XX', unpack(times))",
        "",
        about_leases.test_a_lapsed_lease_that_nobody_reclaimed_may_still_be_renewed,
    ),
    Mutant(
        "keeps cancels to itself",
        "renew",
        "letters[i] = 'c'",
        "letters[i] = 'h'",
        about_cancelling.test_the_holder_of_a_job_learns_of_the_cancel_when_it_renews,
    ),
]

SETTLE = [
    Mutant(
        "does not compare tokens",
        "settle",
        "local scores = call('ZMSCORE', leased, unpack(members))",
        WITHOUT_TOKENS + "local scores = without_tokens(members)",
        partial(WRONG_TOKEN, kind="ack"),
    ),
    Mutant(
        "does not compare tokens when it fails jobs",
        "settle",
        "local scores = call('ZMSCORE', leased, unpack(members))",
        WITHOUT_TOKENS + "local scores = without_tokens(members)",
        partial(WRONG_TOKEN, kind="fail"),
    ),
    Mutant(
        "does not compare incarnations",
        "settle",
        "local scores = call('ZMSCORE', leased, unpack(members))",
        WITHOUT_LIVES + "local scores = without_tokens(members)",
        about_settling.test_a_lease_of_the_past_settles_nothing_of_a_job_that_uses_its_id_again,
    ),
    Mutant(
        "leaves the lease",
        "settle",
        "call('ZREM', leased, unpack(current))",
        "",
        partial(about_settling.test_a_settled_lease_settles_nothing_more, kind="ack"),
    ),
    Mutant(
        "charges for free returns",
        "settle",
        "if kind == 'free' then free = decimal(free + 1) end",
        "",
        about_claiming.test_a_free_return_is_a_delivery_and_not_an_attempt,
    ),
    Mutant(
        "does not count crashes",
        "settle",
        "if kind == 'crashed' then crashes = decimal(crashes + 1) end",
        "",
        about_settling.test_a_crashed_release_counts_as_a_crash_and_an_attempt,
    ),
    Mutant(
        "releases what was cancelled",
        "settle",
        "elseif asked[k] == inc or",
        "elseif false or",
        partial(about_cancelling.test_a_release_after_a_cancel_removes_the_job, delay=0.0),
    ),
    Mutant(
        "loses failed jobs",
        "settle",
        "call('HSET', failed, unpack(ended))",
        "",
        about_failing.test_a_failed_job_is_kept_with_its_reason_and_its_envelope,
    ),
]

OTHERS = [
    Mutant(
        "leaves the record",
        "cancel",
        "call('HDEL', jobs, id)",
        "",
        partial(about_cancelling.test_a_waiting_job_that_is_cancelled_never_comes, options={}),
    ),
    Mutant(
        "leaves the delayed member",
        "cancel",
        "call('ZREM', delayed, delayed_member(id, inc, priority))",
        "",
        partial(about_cancelling.test_a_waiting_job_that_is_cancelled_never_comes, options={"delay": 60.0}),
    ),
    Mutant(
        "removes an id twice in one call",
        "cancel",
        "elseif records[i] and not gone[id] then",
        "elseif records[i] then",
        about_cancelling.test_cancels_are_answered_in_order_and_an_id_named_twice_is_removed_once,
    ),
    Mutant(
        "asks nobody",
        "cancel",
        "call('HSET', cancel, id, inc)",
        "",
        about_cancelling.test_the_holder_of_a_job_learns_of_the_cancel_when_it_renews,
    ),
    Mutant(
        "leaves the records",
        "clear",
        "call('RENAME', jobs, fresh)",
        "",
        about_clearing.test_a_clear_removes_ready_and_delayed_jobs_and_tells_their_number,
    ),
    Mutant(
        "leaves the delayed line",
        "clear",
        ", delayed, suspects)",
        ", suspects)",
        about_clearing.test_a_clear_removes_ready_and_delayed_jobs_and_tells_their_number,
    ),
]

MUTANTS = [*PUSH, *CLAIM, *RENEW, *SETTLE, *OTHERS]
