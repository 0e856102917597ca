"""The jobs of an application: the allow-list from which stored calls are built (never by import)."""

from collections.abc import Iterator
from typing import Final

from tenure.definition import JobDefinition, same_class
from tenure.errors import InvalidOption

DEFAULT_QUEUE: Final = "default"


class Registry:
    """Definitions by name, alias and class."""

    def __init__(self) -> None:
        self._jobs: dict[str, JobDefinition] = {}
        self._names: dict[str, JobDefinition] = {}
        self._classes: dict[type, JobDefinition] = {}

    def add(self, definition: JobDefinition) -> None:
        """Register a job; raises ``InvalidOption`` when one of its names is taken, and then changes nothing."""
        names = (definition.name, *definition.aliases)
        for name in names:
            if name in self._names or names.count(name) > 1:
                raise InvalidOption(f"the job name {name!r} is taken; give one of the two another name")
        self._jobs[definition.name] = definition
        self._names.update(dict.fromkeys(names, definition))
        if isinstance(definition.registered, type):
            self._classes[definition.registered] = definition

    def get(self, name: str) -> JobDefinition | None:
        """Return the job of this name or alias, or None."""
        return self._names.get(name)

    def of(self, kind: type) -> JobDefinition | None:
        """Return the job that a class is, or None. Exact: a subclass of a job is not that job."""
        found = self._classes.get(kind)
        if found is None:
            found = next((job for known, job in self._classes.items() if same_class(known, kind)), None)
            if found is not None:
                self._classes[kind] = found
        return found

    def queues(self) -> set[str]:
        """Return the queues that the jobs name, and the default one for those that name none."""
        return {definition.queue or DEFAULT_QUEUE for definition in self}

    def __iter__(self) -> Iterator[JobDefinition]:
        return iter(tuple(self._jobs.values()))

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, name: object) -> bool:
        return name in self._names
