"""The stream's protections, each as the text without which it is gone, and the test that must notice."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from tenure.queue import Release
from tests.redis.mutations import WITHOUT_TOKENS
from tests.streams import test_consumers, test_entries, test_strays
from tests.streams.line import StreamLine


class StreamMutant(NamedTuple):
    """One text in which ``old`` stands once and is replaced by ``new``."""

    name: str
    text: str
    old: str
    new: str
    noticed_by: Callable[[StreamLine], Awaitable[Any]]

    def of(self, source: str) -> str:
        assert source.count(self.old) == 1, f"{self.text} holds {self.old!r} {source.count(self.old)} times: renew this"
        return source.replace(self.old, self.new)


STALE = test_entries.test_a_stale_settlement_leaves_the_entry_of_the_lease_that_is_held
DRAINED = test_entries.test_nothing_is_left_in_the_stream_when_everything_is_done
RELEASED = partial(
    test_entries.test_a_settlement_takes_the_entry_out_and_adds_the_next_attempt_in_the_same_step, end=Release, left=1
)
CANCELLED = test_entries.test_a_cancelled_job_leaves_its_entry_to_the_next_claim
LOST_GROUP = test_strays.test_a_group_that_was_destroyed_is_made_anew_and_no_lease_is_given_twice
PUT_OFF = test_strays.test_a_job_that_is_put_off_while_the_group_is_lost_does_not_come_early
SAME_ID = test_strays.test_a_new_entry_that_gets_the_id_of_the_lost_one_stays
FOREIGN = test_strays.test_what_others_put_into_the_stream_is_set_aside_whole_and_holds_nothing_up

SETTLING = [
    StreamMutant(
        "does not compare tokens",
        "settle",
        "local scores = call('ZMSCORE', leased, unpack(members))",
        WITHOUT_TOKENS + "local scores = without_tokens(members)",
        STALE,
    ),
    StreamMutant(
        "acknowledges whatever is named",
        "settle",
        "if #current > 0 then",
        "leave_line(ready, members)\nif #current > 0 then",
        STALE,
    ),
    StreamMutant(
        "acknowledges and does not delete",
        "stream/line",
        "    call('XDEL', ready, unpack(entries))\n    return\n",
        "    return\n",
        DRAINED,
    ),
    StreamMutant(
        "deletes and does not acknowledge",
        "stream/line",
        "call('XACK', ready, GROUP, unpack(entries)) == #entries",
        "true",
        RELEASED,
    ),
    StreamMutant(
        "deletes by id alone",
        "stream/line",
        "if entry and not fresh[entries[i]] and job_of(entry[2]) == jobs_left[i] then",
        "if entry then",
        test_strays.test_a_lease_from_before_a_clear_takes_no_entry_of_a_later_job,
    ),
    StreamMutant(
        "leaves entries that are not pending",
        "stream/line",
        "if entry and not fresh[entries[i]] and job_of(entry[2]) == jobs_left[i] then",
        "if false then",
        PUT_OFF,
    ),
    StreamMutant("takes back its own new entry", "stream/line", "not fresh[entries[i]] and ", "", SAME_ID),
]
CLAIMING = [
    StreamMutant("reads from the end", "stream/taking", "ready, GROUP, '0')", "ready, GROUP, '$')", DRAINED),
    StreamMutant(
        "drops the entries of leases", "stream/taking", "if not inc or entries", "if true or entries", LOST_GROUP
    ),
    StreamMutant("keeps what brings no lease", "stream/taking", "if #spent > 0 then", "if false then", CANCELLED),
    StreamMutant(
        "drops what is not its own", "stream/taking", "set_aside(read[i][1], whole(read[i][2]), 'entry')", "", FOREIGN
    ),
    StreamMutant("takes whatever has its field", "stream/line", "#fields == 2 and ", "", FOREIGN),
    StreamMutant(
        "forgets the entry", "stream/taking", "places[#entries] = '@' .. read[i][1]", "places[#entries] = ''", RELEASED
    ),
    StreamMutant(
        "recovers twice",
        "claim",
        "if #lapsed > 0 then leave_line(ready, lapsed) end",
        "",
        test_entries.test_a_claim_promotes_what_is_due_and_recovers_what_has_lapsed_before_it_reads,
    ),
]
STRAYING = [
    StreamMutant(
        "looks for no strays",
        "stream/strays",
        "local function strays()\n",
        "local function strays()\n  if true then return false end\n",
        test_strays.test_entries_that_a_broken_claim_left_pending_are_taken_up_again,
    ),
    StreamMutant(
        "steals from the living",
        "stream/strays",
        "if not held[i] or header(held[i]) ~= inc then",
        "if true then",
        test_strays.test_looking_for_strays_leaves_the_entries_of_leases_where_they_are,
    ),
    StreamMutant(
        "looks at the first page alone",
        "stream/strays",
        "more and page[100][1] or ''",
        "''",
        test_strays.test_the_last_of_many_strays_is_taken_up_within_two_seconds,
    ),
    StreamMutant(
        "brings what is delayed",
        "stream/strays",
        "and not call('ZSCORE', delayed, delayed_member(id, inc, priority))",
        "",
        test_strays.test_a_stray_of_a_job_that_is_delayed_does_not_bring_it_early,
    ),
    StreamMutant(
        "brings what is gone",
        "stream/strays",
        "if #spent > 0 then drop(ready, spent) end",
        "",
        test_strays.test_a_stray_whose_job_is_gone_is_dropped,
    ),
    StreamMutant(
        "deletes consumers with entries",
        "stream/retire",
        "told['pending'] == 0 and ",
        "",
        test_consumers.test_only_consumers_without_pending_entries_are_deleted,
    ),
    StreamMutant(
        "deletes consumers at once",
        "stream/retire",
        "and told['idle'] >= tonumber(ARGV[1])",
        "",
        test_consumers.test_only_consumers_without_pending_entries_are_deleted,
    ),
]
MUTANTS = [*SETTLING, *CLAIMING, *STRAYING]
