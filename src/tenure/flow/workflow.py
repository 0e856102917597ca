"""Workflows: calls that name those that they come after."""

from collections.abc import Iterable, Sequence

from tenure.compositions import Kind
from tenure.errors import InvalidOption
from tenure.flow.values import Composer, Composition, CompositionOptions, Given, Part
from tenure.naming import shown


class WorkflowStep:
    """A part of a workflow, to be named by those that come after it."""

    __slots__ = ("after", "name", "part", "workflow")

    def __init__(self, workflow: "Workflow", part: Part, name: str, after: Sequence["str | WorkflowStep"]) -> None:
        self.workflow: Workflow = workflow
        self.part: Part = part
        self.name: str = name
        self.after: Sequence[str | WorkflowStep] = after

    def __repr__(self) -> str:
        return f"<step {self.name}>"


class Workflow(Composition):
    """Calls in any order without a cycle: each begins when all that it comes after have succeeded."""

    kind = Kind.WORKFLOW

    def __init__(self, composer: Composer, options: CompositionOptions) -> None:
        super().__init__(composer, options)
        self.steps: dict[str, WorkflowStep] = {}
        """By name, in the order in which they were added."""

    @property
    def label(self) -> str:
        """What messages call it."""
        return self._called()

    def add(
        self,
        call: Given,
        /,
        *,
        after: "str | WorkflowStep | Iterable[str | WorkflowStep]" = (),
        name: str | None = None,
    ) -> WorkflowStep:
        """Add a call, an instance of a class job, or another composition, and return what others can come after.

        ``after`` has steps, or names of steps, which may be added later. Raises ``NotRegistered`` for what is no job,
        and ``InvalidOption`` for a name that is taken, or a step of another workflow.
        """
        part = self._part(call)
        chosen: object = f"{_kind_of(part)} #{len(self.steps) + 1}" if name is None else name
        if not isinstance(chosen, str) or not chosen:
            raise InvalidOption(f"the name of a step must be a text, not {shown(chosen)}")
        name = chosen
        if name in self.steps:
            raise InvalidOption(f"{self.label} has a step {shown(name)} already")
        befores = [after] if isinstance(after, str | WorkflowStep) else list(after)
        for before in befores:
            if isinstance(before, WorkflowStep) and before.workflow is not self:
                raise InvalidOption(f"the step {shown(before.name)} belongs to another workflow")
            if not isinstance(before, str | WorkflowStep):
                raise InvalidOption(f"after has steps or their names, not {shown(before)}")
        step = self.steps[name] = WorkflowStep(self, part, name, tuple(befores))
        return step

    def befores(self) -> dict[str, list[str]]:
        """Return the names of the steps that each one comes directly after, each once.

        Raises ``InvalidOption`` for a name that there is not, and for a cycle, which it names.
        """
        found: dict[str, list[str]] = {}
        for step in self.steps.values():
            names = [before if isinstance(before, str) else before.name for before in step.after]
            for name in names:
                if name not in self.steps:
                    raise InvalidOption(
                        f"{shown(step.name)} comes after {shown(name)}, and {self.label} has no step of that name"
                    )
            found[step.name] = list(dict.fromkeys(names))
        _refuse_cycle(self.label, found)
        return found


def _kind_of(part: Part) -> str:
    return str(part.kind) if isinstance(part, Composition) else part.name


def _refuse_cycle(label: str, befores: dict[str, list[str]]) -> None:
    """Raise ``InvalidOption`` that names a cycle, if there is one. Not by recursion: a workflow may be long."""
    open_before = {name: len(before) for name, before in befores.items()}
    afters: dict[str, list[str]] = {name: [] for name in befores}
    for name, before in befores.items():
        for one in before:
            afters[one].append(name)
    free = [name for name, number in open_before.items() if not number]
    for name in free:  # grows
        for after in afters[name]:
            open_before[after] -= 1
            if not open_before[after]:
                free.append(after)
    left = befores.keys() - set(free)
    if not left:
        return
    # What is left comes after something that is left: going back from any of it must come round.
    path: list[str] = []
    seen: dict[str, int] = {}
    name = next(one for one in befores if one in left)
    while name not in seen:
        seen[name] = len(path)
        path.append(name)
        name = next(before for before in befores[name] if before in left)
    cycle = [*path[seen[name] :], name][::-1]
    if len(cycle) > 12:
        cycle = [*cycle[:6], "…", *cycle[-5:]]
    way = " → ".join(shown(one) if one != "…" else one for one in cycle)
    raise InvalidOption(f"{label} has a cycle, and would never end: {way}; nothing was sent")
