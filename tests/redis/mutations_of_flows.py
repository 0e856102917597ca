"""As ``mutations``, for what the scripts do for unique jobs and compositions."""

from functools import partial

from tenure.compositions import Kind, When
from tenure.queue import Ack
from tenure.testing.contract import (
    StoreUnderTest,
    about_advancing,
    about_cancelling_compositions,
    about_composing,
    about_growing,
    about_passing_results,
    about_releasing,
    about_unique,
)
from tenure.testing.contract.composing import C, batch, begun, composer, ran
from tenure.testing.contract.steps import Q, claim
from tests.contract.mutants import Mutant
from tests.redis.mutations import WITHOUT_TOKENS

RETRIED = about_passing_results.test_a_failed_member_that_is_retried_is_a_job_of_its_own_with_its_argument
A_CHAIN = about_advancing.test_the_jobs_of_a_chain_run_one_after_the_other


async def no_callback_for_successes_runs_after_a_cancel(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(2), kind=Kind.BATCH)
    leases = await claim(store.queue, 2)
    assert await composer(store.queue).cancel_composition(Q, C)
    assert await ran(store.queue, *map(Ack, leases)) == ["c.c13"]


UNIQUE = [
    Mutant(
        "stores a text twice in one call",
        "include/storing",
        "texts[text] or holder_of(text)",
        "holder_of(text)",
        about_unique.test_of_two_unique_jobs_in_one_call_the_second_is_held_by_the_first,
    ),
    Mutant(
        "asks nobody",
        "include/storing",
        "text and (texts[text] or holder_of(text))",
        "nil",
        partial(about_unique.test_a_unique_job_that_waits_holds_others_and_its_id_is_told, delay=0.0),
    ),
    Mutant(
        "forgets those that run",
        "include/unique",
        "header(call('HGET', running, id) or '') == inc or ",
        "",
        about_unique.test_a_unique_job_that_runs_holds_others_also_when_its_lease_has_lapsed,
    ),
    Mutant(
        "believes every lock",
        "include/unique",
        "  if header(call('HGET', running, id)",
        "  if true or header(call('HGET', running, id)",
        about_unique.test_a_clear_frees_the_texts_of_what_waited_at_once_and_of_nothing_else,
    ),
    Mutant(
        "takes a text that another has",
        "retry",
        " and not (text and (texts[text] or holder_of(text)))",
        "",
        about_unique.test_a_retry_changes_nothing_while_another_job_has_the_text,
    ),
    Mutant(
        "does not take the text again",
        "retry",
        "if #locks > 0 then call('HSET', unique, unpack(locks)) end",
        "",
        about_unique.test_a_retry_takes_the_text_again,
    ),
]

STORING = [
    Mutant(
        "takes an id again",
        "prepare",
        "and 'n' or 'y'",
        "and 'y' or 'y'",
        about_composing.test_an_id_is_taken_by_one_composition_of_a_home,
    ),
    Mutant(
        "does not count its jobs",
        "add",
        "c.total = c.total + 1",
        "c.total = c.total + 0",
        about_composing.test_a_composition_that_has_started_tells_what_it_is_and_how_far_it_has_come,
    ),
    Mutant("opens no gate", "start", "tell(id, 1, '-1', false)", "", A_CHAIN),
    Mutant(
        "tells of what has not started",
        "include/flows",
        "c and c.phase == 'a' and",
        "c and",
        about_composing.test_a_composition_that_has_not_started_is_seen_by_nobody,
    ),
    Mutant(
        "tells of nothing",
        "composition",
        "readable(c) and packed(c) or ''",
        "''",
        about_composing.test_a_composition_that_has_started_tells_what_it_is_and_how_far_it_has_come,
    ),
    Mutant(
        "begins each page anew",
        "compositions",
        "'(' .. ARGV[2]",
        "'-'",
        about_composing.test_compositions_are_listed_once_each_page_by_page,
    ),
    Mutant(
        "forgets what is not over",
        "dissolve",
        "c.over ~= '0' and tonumber(c.over) <= till",
        "true",
        about_composing.test_a_prune_forgets_what_is_over_and_tells_its_number,
    ),
    Mutant(
        "calls it over while a callback runs",
        "include/flows",
        "c.left == 0 and",
        "c.finished ~= '0' and",
        partial(about_composing.test_a_composition_is_not_over_before_its_callbacks_are, when=When.ANY),
    ),
    Mutant(
        "forgets nothing by itself",
        "include/flows",
        "tonumber(c.over) + c.retention > now",
        "true",
        about_composing.test_a_composition_can_be_read_for_its_time_and_is_gone_then,
    ),
]

ADVANCING = [
    Mutant(
        "counts without a token",
        "settle",
        "local scores = call('ZMSCORE', leased, unpack(members))",
        WITHOUT_TOKENS + "local scores = without_tokens(members)",
        partial(about_advancing.test_a_stale_settlement_changes_nothing_of_a_composition, end="a"),
    ),
    Mutant(
        "forgets whom it told before",
        "include/releasing",
        "if so_far then count, bad = count + so_far, bad or worse == '1' end",
        "",
        partial(about_advancing.test_a_batch_goes_on_whatever_its_members_come_to, ends="aaa", together=False),
    ),
    Mutant(
        "forgets that one was bad",
        "include/releasing",
        "count + so_far, bad or worse == '1'",
        "count + so_far, bad",
        partial(about_advancing.test_a_batch_goes_on_whatever_its_members_come_to, ends="faa", together=False),
    ),
    Mutant(
        "takes many endings for one",
        "settle",
        "runs[k].of, runs[k].n,",
        "runs[k].of, 1,",
        about_releasing.test_fifty_settlements_in_one_call_are_fifty_ends,
    ),
    Mutant(
        "takes the endings of several for those of one",
        "settle",
        "if of and (of ~= run.of or",
        "if of and (not run.of or",
        about_releasing.test_many_chains_advance_in_one_call,
    ),
    Mutant(
        "runs whatever happened",
        "include/releasing",
        "if when == 's' then runs = not bad and not c.asked end",
        "if when == 's' then runs = not c.asked end",
        partial(about_advancing.test_a_chain_ends_with_the_job_that_failed, fail="failed"),
    ),
    Mutant(
        "releases without bound",
        "include/releasing",
        "nodes = 100,",
        "nodes = 10000,",
        about_releasing.test_one_call_releases_a_hundred_jobs_and_later_claims_the_rest,
    ),
    Mutant(
        "forgets what is left",
        "include/releasing",
        "if #lines > 0 then call('RPUSH', flows_due, unpack(lines)) end",
        "",
        about_releasing.test_what_a_settlement_could_not_release_is_released_by_claims,
    ),
    Mutant(
        "leaves what is due to settlements",
        "claim",
        "base, owing, soonest_fresh = flow.work(base)",
        "",
        about_releasing.test_one_call_releases_a_hundred_jobs_and_later_claims_the_rest,
    ),
    Mutant(
        "gives a result to whoever comes next",
        "include/releasing",
        "if not find(flags, 't', 1, true) then input = nil end",
        "",
        about_passing_results.test_a_job_that_does_not_take_a_result_has_none,
    ),
    Mutant("keeps its place in the composition", "retry", "rest = standalone(rest)", "", RETRIED),
    Mutant(
        "loses the argument",
        "include/membership",
        "if size ~= '' then return '|' .. keep .. '|' .. text .. '|::::' .. size end",
        "",
        RETRIED,
    ),
    Mutant(
        "grows under any lease",
        "grow",
        "call('ZSCORE', leased, member) and ",
        "",
        about_growing.test_a_batch_does_not_grow_under_a_lease_that_is_stale,
    ),
    Mutant(
        "lets the gate wait for as many as before",
        "grow",
        "decimal(needs + added)",
        "needs",
        about_growing.test_a_member_adds_members_that_the_batch_waits_for,
    ),
    Mutant(
        "grows what was cancelled",
        "grow",
        "c and not c.asked and next_one",
        "c and next_one",
        about_growing.test_a_batch_that_was_cancelled_does_not_grow,
    ),
]

CANCELLING = [
    Mutant(
        "hands out what was cancelled",
        "include/flows",
        "return c and c.asked",
        "return false",
        about_cancelling_compositions.test_a_callback_that_waits_when_its_composition_is_cancelled_is_leased_to_be_ended,
    ),
    Mutant(
        "lets jobs begin",
        "include/releasing",
        "runs = not bad and not c.asked",
        "runs = not bad",
        no_callback_for_successes_runs_after_a_cancel,
    ),
    Mutant(
        "leaves what waits for others",
        "halt",
        "    if node then",
        "    if false then",
        about_cancelling_compositions.test_what_is_told_of_an_end_after_a_cancel_does_not_begin,
    ),
    Mutant(
        "leaves what waits in line",
        "halt",
        "call('HDEL', jobs, job)",
        "",
        partial(about_cancelling_compositions.test_a_composition_of_which_nothing_runs_is_cancelled_at_once, delay=0.0),
    ),
    Mutant(
        "tells nobody that runs",
        "halt",
        "call('HSET', cancel, job, inc)",
        "",
        about_cancelling_compositions.test_a_composition_is_cancelling_while_something_of_it_runs,
    ),
    Mutant(
        "takes a job that was retried for its own",
        "halt",
        "if mine ~= id or its_number ~= number then return #record end",
        "",
        about_cancelling_compositions.test_a_member_that_was_retried_by_hand_is_not_cancelled_with_its_composition,
    ),
    Mutant(
        "keeps it from the composition",
        "cancel",
        "member_ended(rest, 'c')",
        "",
        about_cancelling_compositions.test_a_cancelled_member_of_a_chain_stops_it,
    ),
    Mutant(
        "keeps it from the composition",
        "sweep",
        "member_ended(inc and rest or remains(id, record), 'c')",
        "",
        about_cancelling_compositions.test_cleared_members_end_cancelled_and_the_others_go_on,
    ),
]

MUTANTS = [*UNIQUE, *STORING, *ADVANCING, *CANCELLING]
