"""As ``mutations``, for the scripts beside the queue itself: the failed store, counting and looking up."""

from tenure.testing.contract import about_counting, about_failing, about_inspecting
from tests.contract.mutants import Mutant

MUTANTS = [
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
