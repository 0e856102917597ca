"""The statements' protections, each as the text without which it is gone, and the behaviour that must notice.

A bound value stays bound where a comparison goes, so that the statement still runs.
"""

from functools import partial

from tenure.testing.contract import (
    about_cancelling,
    about_claiming,
    about_clearing,
    about_crashes,
    about_delays,
    about_failing,
    about_holders,
    about_leases,
    about_listing,
    about_pausing,
    about_priorities,
    about_progress,
    about_pruning,
    about_pushing,
    about_restarting,
    about_results,
    about_settling,
    about_the_unreadable,
)
from tests.contract.mutants import Behaviour, Mutant

A_DELIVERY = about_claiming.test_every_claim_is_a_delivery_with_a_token_of_its_own_and_a_higher_fence
WRONG_TOKEN = about_settling.test_a_settlement_with_another_token_is_stale_and_writes_nothing
EARLIER_LIFE = about_settling.test_a_lease_of_the_past_settles_nothing_of_a_job_that_uses_its_id_again
EARLIER_FAILURE = about_failing.test_a_record_of_an_earlier_failure_neither_retries_nor_forgets_a_later_one


def without_token(statement: str, noticed_by: Behaviour) -> Mutant:
    return Mutant("does not compare tokens", statement, "AND token = ?", "AND (token = ? OR 1)", noticed_by)


TOKENS = [
    without_token("RENEW", about_leases.test_a_renewal_with_another_token_is_lost),
    without_token("FINISH", partial(WRONG_TOKEN, kind="ack")),
    without_token("RELEASE", partial(WRONG_TOKEN, kind="release")),
    without_token("FAIL", partial(WRONG_TOKEN, kind="fail")),
    without_token("SET_ASIDE", partial(WRONG_TOKEN, kind="aside")),
    without_token("REPORT", about_progress.test_another_token_reports_nothing),
]

KEPT = [
    Mutant(
        "leaves the end of an earlier life",
        "DROP_END",
        "queue = ? AND id = ?",
        "queue = ? AND id = ? AND 0",
        partial(about_results.test_a_job_that_has_ended_does_not_keep_a_new_one_from_being_pushed, keep=0.0),
    ),
    Mutant(
        "tells ends for ever",
        "FIND_END",
        "until > ?",
        "(until > ? OR 1)",
        about_results.test_the_end_is_kept_for_its_time_and_is_gone_then,
    ),
    Mutant(
        "leaves the progress of an attempt",
        "DROP_PROGRESS",
        "incarnation = ?",
        "incarnation = ? AND 0",
        partial(about_progress.test_progress_ends_with_its_lease_and_a_settled_one_reports_nothing, kind="release"),
    ),
    Mutant(
        "takes the progress of jobs that keep nothing",
        "REPORT",
        "AND keep > 0",
        "",
        about_progress.test_a_job_that_keeps_nothing_has_no_progress,
    ),
]

OTHERS = [
    Mutant("does not count attempts", "LEASE", "deliveries = deliveries + 1", "deliveries = deliveries", A_DELIVERY),
    Mutant(
        "does not compare incarnations", "FINISH", "WHERE incarnation = ?", "WHERE (incarnation = ? OR 1)", EARLIER_LIFE
    ),
    Mutant(
        "does not compare ids",
        "FINISH",
        "WHERE incarnation = ? AND queue = ? AND id = ?",
        "WHERE (incarnation = ? OR 1) AND queue = ? AND (id = ? OR 1)",
        about_settling.test_a_lease_settles_nothing_of_another_job,
    ),
    Mutant(
        "takes an id that exists again",
        "PUSH",
        "WHERE tenure_jobs.shelf <> excluded.shelf AND",
        "WHERE",
        about_pushing.test_an_id_that_is_ready_is_held_and_nothing_changes,
    ),
    Mutant(
        "keeps the cancel request of a cleared job",
        "PUSH",
        "crashes = 0, cancel_requested = 0",
        "crashes = 0",
        about_cancelling.test_a_job_that_is_to_be_cancelled_and_waits_again_can_be_removed,
    ),
    Mutant(
        "keeps the counters of a cleared job",
        "PUSH",
        "deliveries = 0, free = 0, crashes = 0, cancel_requested = 0",
        "cancel_requested = 0",
        about_clearing.test_a_cleared_job_that_ran_before_leaves_nothing_to_the_next_of_its_id,
    ),
    Mutant(
        "reclaims before the end",
        "LAPSED",
        "rank <= :now",
        "(rank <= :now OR 1)",
        about_leases.test_recovery_takes_only_what_has_lapsed,
    ),
    Mutant(
        "recovers without bound",
        "LAPSED",
        "LIMIT :step",
        "LIMIT :step * 10",
        about_leases.test_a_claim_recovers_at_most_a_hundred_lapsed_leases,
    ),
    Mutant(
        "does not count crashes",
        "RECOVER",
        "crashes = crashes + 1",
        "crashes = crashes",
        about_crashes.test_lapses_count_as_crashes,
    ),
    Mutant(
        "hands out before the time",
        "DUE",
        "rank <= :now",
        "(rank <= :now OR 1)",
        about_delays.test_a_backlog_of_delayed_jobs_is_not_touched_by_due_ones,
    ),
    Mutant(
        "promotes without bound",
        "DUE",
        "LIMIT :step",
        "LIMIT :step * 10",
        about_delays.test_a_claim_promotes_at_most_a_hundred_due_jobs,
    ),
    Mutant(
        "forgets priorities when it promotes",
        "PROMOTE",
        "rank = -priority",
        "rank = 0",
        about_priorities.test_a_priority_outlives_a_delay,
    ),
    Mutant(
        "forgets priorities",
        "FIRST",
        "ORDER BY rank, entry",
        "ORDER BY entry",
        about_priorities.test_a_higher_priority_comes_first,
    ),
    Mutant(
        "keeps a place of the past",
        "FIRST",
        "ORDER BY rank, entry",
        "ORDER BY rank, incarnation",
        about_priorities.test_a_released_job_goes_to_the_tail_of_its_line,
    ),
    Mutant(
        "does not extend",
        "RENEW",
        "SET rank = ? + length",
        "SET rank = rank + 0 * ?",
        about_leases.test_a_lapsed_lease_that_nobody_reclaimed_may_still_be_renewed,
    ),
    Mutant(
        "keeps cancels to itself",
        "RENEW",
        "RETURNING cancel_requested",
        "RETURNING 0",
        about_cancelling.test_the_holder_of_a_job_learns_of_the_cancel_when_it_renews,
    ),
    Mutant(
        "charges for free returns",
        "RELEASE",
        "free = free + ?",
        "free = free + 0 * ?",
        about_claiming.test_a_free_return_is_a_delivery_and_not_an_attempt,
    ),
    Mutant(
        "does not count crashes",
        "RELEASE",
        "crashes = crashes + ?",
        "crashes = crashes + 0 * ?",
        about_settling.test_a_crashed_release_counts_as_a_crash_and_an_attempt,
    ),
    Mutant(
        "releases what was cancelled",
        "RELEASE",
        " AND NOT cancel_requested",
        "",
        partial(about_cancelling.test_a_release_after_a_cancel_removes_the_job, delay=0.0),
    ),
    Mutant(
        "asks nobody",
        "REQUEST_CANCEL",
        "cancel_requested = 1",
        "cancel_requested = 0",
        about_cancelling.test_the_holder_of_a_job_learns_of_the_cancel_when_it_renews,
    ),
    Mutant(
        "leaves the jobs",
        "NEW_LINE",
        "SET line = ?",
        "SET line = line + 0 * ?",
        about_clearing.test_a_clear_removes_ready_and_delayed_jobs_and_tells_their_number,
    ),
    Mutant("retries a job of another failure", "RETRY", "incarnation = ?4 AND", "(?4 = ?4) AND", EARLIER_FAILURE),
    Mutant(
        "keeps the old counters",
        "RETRY",
        "deliveries = 0, free = 0, crashes = 0",
        "free = 0",
        about_failing.test_a_retried_job_is_new_and_ready_and_no_longer_failed,
    ),
    Mutant(
        "forgets a job of another failure",
        "FORGET",
        "WHERE incarnation = ?",
        "WHERE (incarnation = ? OR 1)",
        EARLIER_FAILURE,
    ),
    Mutant(
        "takes every lease for lapsed",
        "COUNT_LAPSED",
        "rank <= :now",
        "(rank <= :now OR 1)",
        about_leases.test_a_lapsed_lease_that_nobody_reclaimed_may_still_be_renewed,
    ),
]

ONE_QUEUE = about_pausing.test_pausing_one_queue_leaves_the_others_alone
KEPT_APART = about_the_unreadable.test_records_are_kept_per_queue_and_namespace

OPERATING = [
    Mutant(
        "hands out what is paused",
        "FIND_QUEUE",
        "EXISTS (SELECT 1 FROM tenure_paused",
        "0 AND EXISTS (SELECT 1 FROM tenure_paused",
        about_pausing.test_a_paused_queue_hands_out_nothing_until_it_is_resumed,
    ),
    Mutant("pauses all namespaces", "FIND_QUEUE", "p.namespace = q.namespace AND", "", ONE_QUEUE),
    Mutant("pauses all queues", "FIND_QUEUE", "AND p.name = q.name", "", ONE_QUEUE),
    Mutant("tells of all namespaces", "FIND_PAUSED", "WHERE namespace = ?", "WHERE (namespace = ? OR 1)", ONE_QUEUE),
    Mutant("resumes all queues", "RESUME", "AND name = ?", "AND (name = ? OR 1)", ONE_QUEUE),
    Mutant(
        "keeps the first marker",
        "SET_SETTING",
        "DO UPDATE SET value = excluded.value",
        "DO NOTHING",
        about_restarting.test_the_marker_changes_with_each_request,
    ),
    Mutant(
        "restarts all namespaces",
        "FIND_SETTING",
        "WHERE namespace = ?",
        "WHERE (namespace = ? OR 1)",
        about_restarting.test_a_marker_belongs_to_one_namespace,
    ),
    Mutant(
        "prunes the young",
        "PRUNABLE",
        "rank <= :until",
        "(rank <= :until OR 1)",
        about_pruning.test_a_prune_of_nothing_old_removes_nothing,
    ),
    Mutant(
        "shows the last of a page again",
        "JOBS_PAGE",
        "(rank, entry) > (:rank, :entry)",
        "(rank, entry) >= (:rank, :entry)",
        partial(about_listing.test_reading_page_by_page_to_the_end_gives_each_job_once, limit=7),
    ),
    Mutant(
        "skips what falls due at the same moment",
        "JOBS_PAGE",
        "(rank, entry) > (:rank, :entry)",
        "rank > :rank AND :entry = :entry",
        partial(about_listing.test_reading_page_by_page_to_the_end_gives_each_job_once, limit=7),
    ),
    Mutant(
        "lists by age",
        "JOBS_PAGE",
        "ORDER BY rank, entry",
        "ORDER BY entry",
        about_listing.test_pages_of_jobs_of_several_priorities_miss_and_repeat_none,
    ),
    Mutant(
        "tells of everybody's leases",
        "HELD_PAGE",
        "CASE WHEN substr(token, 1, length(:prefix)) = :prefix THEN envelope END",
        "CASE WHEN :prefix > '' THEN envelope END",
        about_holders.test_only_what_this_holder_holds_in_this_queue_is_found,
    ),
    Mutant(
        "finds the last of a page again",
        "HELD_PAGE",
        "(rank, entry) > (:rank, :entry)",
        "(rank, entry) >= (:rank, :entry)",
        about_holders.test_many_leases_of_a_holder_among_many_others_are_each_found_once,
    ),
    Mutant(
        "lists the newest first",
        "UNREADABLE_PAGE",
        "ORDER BY number",
        "ORDER BY number DESC",
        about_the_unreadable.test_records_are_listed_oldest_first,
    ),
    Mutant(
        "begins anew with each page",
        "UNREADABLE_PAGE",
        "AND number > ?",
        "AND (number > ? OR 1)",
        about_the_unreadable.test_records_are_read_in_pages_each_behind_the_last_key,
    ),
    Mutant("reads any queue's", "UNREADABLE_BYTES", "AND queue = ?", "AND (queue = ? OR 1)", KEPT_APART),
]

MUTANTS = [*TOKENS, *KEPT, *OTHERS, *OPERATING]
