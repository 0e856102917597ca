"""As ``mutations``, for unique jobs and compositions."""

from functools import partial

from tenure.testing.contract import (
    about_advancing,
    about_cancelling_compositions,
    about_composing,
    about_growing,
    about_passing_results,
    about_releasing,
    about_unique,
)
from tests.contract.mutants import Mutant
from tests.sql.mutations import without_token

UNIQUE = [
    Mutant(
        "leaves its text with a job that failed",
        "FAIL",
        "locked = NULL, ",
        "",
        partial(about_unique.test_every_settlement_that_ends_a_unique_job_frees_its_text, end="fail", keep=0.0),
    ),
    Mutant(
        "retries without its text",
        "RETRY",
        "locked = unique_key, ",
        "",
        about_unique.test_a_retry_takes_the_text_again,
    ),
    Mutant(
        "keeps the text of a cleared job",
        "PUSH",
        "unique_key = excluded.unique_key, locked = excluded.locked, ",
        "",
        about_unique.test_an_id_that_was_cleared_and_pushed_anew_without_a_text_holds_nothing,
    ),
    Mutant(
        "takes one text for another",
        "FIND_LOCK",
        "locked = ?",
        "(locked = ? OR 1)",
        about_unique.test_other_texts_other_queues_and_other_namespaces_hold_nothing,
    ),
]
"""Of ``statements``, as those of ``MEMBERS``."""

MEMBERS = [
    Mutant(
        "leaves a failed job in its composition",
        "FAIL",
        "composition = NULL, node = NULL,\n    tells = NULL, flags = 0",
        "flags = flags",
        about_passing_results.test_a_failed_member_that_is_retried_is_a_job_of_its_own_with_its_argument,
    ),
    Mutant(
        "sweeps jobs of compositions as if they were of none",
        "SWEEP",
        "RETURNING composition,",
        "RETURNING NULL,",
        about_cancelling_compositions.test_cleared_members_end_cancelled_and_the_others_go_on,
    ),
    Mutant(
        "never comes back to what is due",
        "FIND_QUEUE",
        "SELECT min(todo) FROM tenure_compositions WHERE home = q.number",
        "SELECT NULL",
        about_releasing.test_one_call_releases_a_hundred_jobs_and_later_claims_the_rest,
    ),
]

EACH_ONCE = about_composing.test_compositions_are_listed_once_each_page_by_page

COMPOSITIONS = [
    without_token("FIND_MEMBER", about_growing.test_a_batch_does_not_grow_under_a_lease_that_is_stale),
    Mutant(
        "forgets what a gate was told",
        "CHANGE",
        "SET needs = ?",
        "SET needs = needs + 0 * ?",
        about_advancing.test_a_job_that_was_delivered_again_counts_once,
    ),
    Mutant(
        "forgets that one did not succeed",
        "CHANGE",
        "bad = ?",
        "bad = 0 * ?",
        partial(about_advancing.test_a_batch_goes_on_whatever_its_members_come_to, ends="faa", together=False),
    ),
    Mutant(
        "forgets what is due",
        "CHANGE",
        "turn = ?",
        "turn = NULLIF(?1 - ?1 + 0 * ?, 0)",
        about_releasing.test_one_call_releases_a_hundred_jobs_and_later_claims_the_rest,
    ),
    Mutant(
        "lets nothing expire",
        "RELEASE",
        "?6 + expires_in",
        "NULL",
        about_advancing.test_delays_and_expiries_count_from_when_a_job_is_released,
    ),
    Mutant(
        "passes nothing on",
        "RELEASE",
        "?7, flags, input",
        "?7, flags, NULL",
        partial(about_passing_results.test_a_result_is_passed_on_byte_for_byte, result=b"x"),
    ),
    Mutant(
        "tells nobody",
        "RELEASE",
        "?7, flags",
        "NULLIF(?7, ?7), flags",
        about_advancing.test_the_jobs_of_a_chain_run_one_after_the_other,
    ),
    Mutant(
        "runs what was cancelled",
        "IS_CANCELLING",
        "SELECT cancelling",
        "SELECT 0",
        about_cancelling_compositions.test_a_callback_that_waits_when_its_composition_is_cancelled_is_leased_to_be_ended,
    ),
    Mutant(
        "takes an id for that of all homes",
        "FIND",
        "WHERE home = ? AND",
        "WHERE (home = ? OR 1) AND",
        about_composing.test_the_same_id_in_another_home_or_namespace_is_another_composition,
    ),
    Mutant("shows the last of a page again", "PAGE", "id > ?", "id >= ?", EACH_ONCE),
    Mutant(
        "prunes the young",
        "OVER",
        "over_at <= ?",
        "(over_at <= ? OR 1)",
        about_composing.test_a_prune_forgets_what_is_over_and_tells_its_number,
    ),
]
"""Of ``compositions``."""
