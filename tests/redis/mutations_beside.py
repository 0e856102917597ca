"""As ``mutations``, for the scripts beside the queue itself: looking up, and what operators read and change."""

from functools import partial

from tenure.queue import JobState
from tenure.testing.contract import (
    StoreUnderTest,
    about_counting,
    about_failing,
    about_holders,
    about_inspecting,
    about_listing,
    about_pausing,
    about_progress,
    about_pruning,
    about_results,
    about_the_unreadable,
)
from tenure.testing.contract.operators import unreadable_store
from tenure.testing.contract.steps import Q
from tests.contract.mutants import Mutant


async def a_page_begins_behind_the_key_that_is_named(store: StoreUnderTest) -> None:
    for job_id in ("a", "b"):
        await about_the_unreadable.set_aside(store.queue, job_id)
    reader = unreadable_store(store.queue)
    (first,) = await reader.unreadable(Q, limit=1)
    assert [record.id for record in await reader.unreadable(Q, limit=1, after=first.key)] == ["b"]


FAILED_AND_STATES = [
    Mutant(
        "retries a job of another failure",
        "retry",
        "inc == ARGV[2 * i + 3] and ",
        "",
        about_failing.test_a_record_of_an_earlier_failure_neither_retries_nor_forgets_a_later_one,
    ),
    Mutant(
        "leaves the job failed",
        "retry",
        "call('HDEL', failed, unpack(done))",
        "",
        about_failing.test_a_retried_job_is_new_and_ready_and_no_longer_failed,
    ),
    Mutant(
        "keeps the old counters",
        "retry",
        "headed(fresh, '0', '0', '0'",
        "headed(fresh, '1', '0', '1'",
        about_failing.test_a_retried_job_is_new_and_ready_and_no_longer_failed,
    ),
    Mutant(
        "forgets a job of another failure",
        "forget",
        "sub(records[i], 1, #mark) == mark and ",
        "",
        about_failing.test_a_record_of_an_earlier_failure_neither_retries_nor_forgets_a_later_one,
    ),
    Mutant(
        "forgets nothing",
        "forget",
        "call('HDEL', failed, unpack(done))",
        "",
        about_failing.test_a_forgotten_job_is_gone,
    ),
    Mutant(
        "takes every lease for lapsed",
        "counts",
        "call('ZCOUNT', leased, '-inf', decimal(now))",
        "call('ZCOUNT', leased, '-inf', '+inf')",
        about_counting.test_what_a_worker_holds_is_not_work_that_waits,
    ),
    Mutant(
        "lists from the start whatever the offset",
        "failed",
        "ARGV[1], ARGV[1] + ARGV[2] - 1",
        "0, ARGV[2] - 1",
        about_failing.test_failed_jobs_are_listed_oldest_first_and_in_pages,
    ),
    Mutant(
        "takes running jobs for gone",
        "states",
        "letters[i] = 'l'",
        "letters[i] = 'g'",
        about_inspecting.test_every_job_is_found_by_its_id,
    ),
]

PAUSING = [
    Mutant(
        "hands out what is paused",
        "claim",
        "if shut then want = 0 end",
        "",
        about_pausing.test_a_paused_queue_hands_out_nothing_until_it_is_resumed,
    ),
    Mutant(
        "pauses promotion too",
        "claim",
        "local due = call('ZRANGEBYSCORE',",
        "local due = call('EXISTS', paused) == 1 and {} or call('ZRANGEBYSCORE',",
        about_pausing.test_a_paused_queue_still_promotes_what_falls_due,
    ),
    Mutant(
        "pauses recovery too",
        "claim",
        "local lapsed = call('ZRANGEBYSCORE',",
        "local lapsed = call('EXISTS', paused) == 1 and {} or call('ZRANGEBYSCORE',",
        about_pausing.test_a_paused_queue_still_recovers_lapsed_leases,
    ),
    Mutant(
        "pauses nothing",
        "pause",
        "call('SET', paused, '1')",
        "local _ = nil",
        about_pausing.test_a_paused_queue_hands_out_nothing_until_it_is_resumed,
    ),
    Mutant(
        "tells that it was open",
        "pause",
        "and 'n' or 'y'",
        "and 'y' or 'y'",
        about_pausing.test_pausing_and_resuming_tell_whether_they_changed_anything,
    ),
    Mutant(
        "resumes nothing",
        "resume",
        "call('DEL', paused) == 1",
        "call('EXISTS', paused) == 1",
        about_pausing.test_a_paused_queue_hands_out_nothing_until_it_is_resumed,
    ),
    Mutant(
        "wakes nobody",
        "resume",
        "if answer == 'y' then wake_up(wake) end",
        "",
        about_pausing.test_a_resume_wakes_a_waiting_claim_at_once,
    ),
]

PRUNING = [
    Mutant(
        "prunes the young",
        "prune",
        "till = decimal(now - ARGV[4])",
        "till = decimal(now)",
        about_pruning.test_a_prune_removes_what_failed_long_enough_ago_and_nothing_younger,
    ),
    Mutant(
        "leaves the records",
        "prune",
        "removed = call('HDEL', failed, unpack(ids))",
        "removed = #ids",
        about_pruning.test_a_pruned_job_is_gone_for_good_and_its_id_is_free,
    ),
    Mutant(
        "tells what it looked at",
        "prune",
        "decimal(removed) .. '|'",
        "decimal(removed + 1) .. '|'",
        about_pruning.test_two_prunes_at_the_same_time_count_each_failure_once,
    ),
]

LISTING = [
    Mutant(
        "lists suspects last",
        "ready",
        "if start <= 1 and listed(1, suspects, 'suspects') then return page end",
        "",
        about_listing.test_a_suspect_is_listed_among_the_ready,
    ),
    Mutant(
        "lists low priorities with the high ones",
        "list/page",
        "'-inf', '(0')",
        "'-inf', '+inf')",
        about_listing.test_pages_of_jobs_of_several_priorities_miss_and_repeat_none,
    ),
    Mutant(
        "begins each page anew",
        "ready",
        "math.max(0, tonumber(place) - gone)",
        "0",
        partial(about_listing.test_reading_page_by_page_to_the_end_gives_each_job_once, limit=7),
    ),
    Mutant(
        "looks in the wrong place for what is delayed",
        "delayed",
        "by_time(jobs, delayed)",
        "by_time(delayed .. 'x', delayed)",
        about_listing.test_delayed_jobs_are_listed_by_when_they_fall_due,
    ),
    Mutant(
        "looks in the wrong place for what runs",
        "running",
        "by_time(running, leased)",
        "by_time(leased .. 'x', leased)",
        about_listing.test_running_jobs_are_listed_by_when_their_leases_end,
    ),
    Mutant(
        "passes over what falls due in the same moment",
        "include/listing",
        "if precedes(mark, sub(member, 1, #mark)) then high = middle else low = middle + 1 end",
        "low = middle + 1",
        partial(about_listing.test_delayed_and_running_jobs_are_paged_too, state=JobState.RUNNING),
    ),
]

HOLDINGS = [
    Mutant(
        "tells of everybody's leases",
        "held",
        "if not find(entries[i], mine, 1, true) then entries[i] = '' end",
        "",
        about_holders.test_only_what_this_holder_holds_in_this_queue_is_found,
    ),
    Mutant(
        "takes the name for a pattern",
        "held",
        "find(entries[i], mine, 1, true)",
        "find(entries[i], mine)",
        about_holders.test_a_holder_is_found_by_its_very_name,
    ),
]

UNREADABLE = [
    Mutant(
        "begins each page anew",
        "unreadable",
        "ARGV[1] == '' and '-' or '(' .. ARGV[1]",
        "'-'",
        a_page_begins_behind_the_key_that_is_named,
    ),
    Mutant(
        "drops nothing",
        "drop",
        "call('XDEL', unreadable, ARGV[i]) == 1",
        "call('XLEN', unreadable) > 0",
        about_the_unreadable.test_a_drop_removes_one_record_and_the_count_falls,
    ),
]

NO_WAY_BACK = partial(about_results.test_a_job_that_has_ended_does_not_keep_a_new_one_from_being_pushed, keep=0.0)

KEPT = [
    Mutant(
        "leaves the end of an earlier life", "include/storing", "call('HDEL', kept, unpack(fresh))", "", NO_WAY_BACK
    ),
    Mutant(
        "leaves the end of the failure",
        "retry",
        "call('HDEL', kept, unpack(done))",
        "",
        about_results.test_a_failed_job_that_is_retried_begins_anew_and_keeps_its_new_end,
    ),
    Mutant(
        "keeps no end of what waited",
        "cancel",
        "keep_all(kept, kept_at)",
        "",
        partial(about_results.test_a_job_that_was_cancelled_while_it_waited_is_told_as_cancelled, delay=0.0),
    ),
    Mutant(
        "keeps ends for ever",
        "include/endings",
        "decimal(later + keep)",
        "decimal(later + keep + 1000000)",
        about_results.test_the_end_is_kept_for_its_time_and_is_gone_then,
    ),
    Mutant(
        "tells ends for ever",
        "states",
        "tonumber(untils[i]) > now",
        "true",
        about_results.test_the_end_is_kept_for_its_time_and_is_gone_then,
    ),
    Mutant(
        "leaves the progress of an attempt",
        "settle",
        "call('HDEL', kept, unpack(ids))",
        "",
        partial(about_progress.test_progress_ends_with_its_lease_and_a_settled_one_reports_nothing, kind="release"),
    ),
    Mutant(
        "leaves the progress of a lapsed lease",
        "claim",
        "if any_kept then call('HDEL', kept, unpack(left)) end",
        "",
        about_progress.test_a_reclaimed_lease_reports_nothing_and_its_progress_is_gone,
    ),
    Mutant(
        "takes progress from anybody",
        "report",
        "if scores[i] then",
        "if true then",
        about_progress.test_another_token_reports_nothing,
    ),
    Mutant(
        "reads what is kept of nobody",
        "kept",
        "values[i] = values[i] or ''",
        "values[i] = ''",
        about_progress.test_the_last_progress_of_a_running_job_is_read_by_anybody,
    ),
]

MUTANTS = [*FAILED_AND_STATES, *PAUSING, *PRUNING, *LISTING, *HOLDINGS, *UNREADABLE, *KEPT]
