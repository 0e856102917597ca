"""As ``mutations``, for the scripts of schedules."""

from functools import partial
from typing import Final

from tenure.testing.contract import about_pushing, about_schedules
from tests.contract.mutants import Mutant

OVERLAP: Final = about_schedules.test_nothing_is_pushed_over_a_job_that_has_not_ended_when_none_may_overlap

MUTANTS = [
    Mutant(
        "tells what was stored before",
        "push",
        "store(looked)",
        "",
        about_pushing.test_an_id_that_is_ready_is_held_and_nothing_changes,
    ),
    Mutant("fires a slot again", "fire", "cursor ~= seen or", "", about_schedules.test_a_slot_fires_once),
    Mutant(
        "fires what is paused", "fire", "paused == '1' or", "", about_schedules.test_a_paused_schedule_fires_nothing
    ),
    Mutant(
        "fires before the time",
        "fire",
        "or tonumber(slot) > now then",
        "then",
        about_schedules.test_a_slot_that_is_not_due_by_the_stores_clock_is_not_fired,
    ),
    Mutant("pushes over what waits", "fire", "call('HEXISTS', jobs, last) +", "0 +", OVERLAP),
    Mutant("pushes over what runs", "fire", "+ call('HEXISTS', running, last) > 0", "> 0", OVERLAP),
    Mutant(
        "forgets its last job",
        "fire",
        "last = ARGV[#ARGV - 2]",
        "last = ''",
        about_schedules.test_firing_pushes_the_jobs_and_remembers_the_slot,
    ),
    Mutant(
        "forgets the slot",
        "fire",
        "slot .. '|0|' .. last",
        "seen .. '|0|' .. last",
        about_schedules.test_slots_may_be_skipped_on_purpose,
    ),
    Mutant(
        "begins anew with another definition",
        "define",
        "if answer == 'y' then call",
        "if true then call",
        about_schedules.test_another_definition_moves_nothing,
    ),
    Mutant(
        "tells of a job that has ended",
        "schedules",
        "> 0",
        ">= 0",
        partial(about_schedules.test_what_has_ended_holds_up_nothing, end="acked"),
    ),
    Mutant(
        "catches up with what was meant to be missed",
        "switch",
        "decimal(math.max(tonumber(cursor), now))",
        "cursor",
        about_schedules.test_a_resumed_schedule_begins_now,
    ),
    Mutant(
        "pauses twice",
        "switch",
        "cursor and paused ~= wanted and 'y'",
        "cursor and 'y'",
        about_schedules.test_a_paused_schedule_fires_nothing,
    ),
    Mutant(
        "leaves what it forgets",
        "undefine",
        "call('HDEL', schedules_at, ARGV[4])",
        "call('HEXISTS', schedules_at, ARGV[4])",
        about_schedules.test_a_removed_schedule_is_gone_and_its_jobs_stay,
    ),
]
