"""Functions and classes become jobs: what is taken, what is refused, and what is kept of them."""

import inspect
from typing import Any

import msgspec
import pytest

from tenure import AsyncJob, InvalidOption, NotEncodable, SyncJob, Tenure, Undecodable
from tenure.definition import JobDefinition
from tenure.envelope import Envelope
from tenure.options import JobDefaults
from tenure.retry import fixed
from tests.unit import jobs


@pytest.fixture
def app() -> Tenure:
    return Tenure("memory://", namespace="tests")


def definition(job: Any) -> JobDefinition:
    found = jobs.app.registry.of(job) if isinstance(job, type) else job.definition
    assert isinstance(found, JobDefinition)
    return found


def stored(job: Any, args: object = (), kwargs: object = None) -> Envelope:
    encode = msgspec.json.encode
    return Envelope(
        v=1, id="x", name="n", queue="q", args=msgspec.Raw(encode(args)), kwargs=msgspec.Raw(encode(kwargs or {}))
    )


# ----------------------------------------------------------------------------------------------------- being registered


def test_a_job_is_named_after_its_module_and_itself() -> None:
    assert jobs.send_welcome.name == "tests.unit.jobs.send_welcome"
    assert definition(jobs.Report).name == "tests.unit.jobs.Report"


def test_a_job_looks_like_its_function() -> None:
    assert jobs.send_welcome.__doc__ == "Welcome somebody."
    assert inspect.signature(jobs.add) == inspect.signature(jobs.add.definition.registered)
    assert repr(jobs.add) == "<job tests.unit.jobs.add>"
    assert repr(definition(jobs.add)) == "<job tests.unit.jobs.add>"


async def test_a_job_that_is_called_runs_plainly() -> None:
    assert jobs.add(1, b=2) == 3
    assert await jobs.take_all(1, 2, flag=True, word="x") == "1 (2,) True {'word': 'x'}"
    assert isinstance(jobs.add, SyncJob)
    assert isinstance(jobs.take_all, AsyncJob)


def test_a_decorated_class_comes_back_unchanged() -> None:
    assert jobs.Report(5).number == 5
    assert type(jobs.Report) is type


def test_the_executor_follows_the_kind_of_handler() -> None:
    kinds = {job: definition(job).executor for job in (jobs.send_welcome, jobs.add, jobs.Report, jobs.Plain)}
    assert list(kinds.values()) == ["async", "thread", "async", "thread"]


def test_a_wrapped_coroutine_function_is_asynchronous(app: Tenure) -> None:
    assert app.job(name="noted")(jobs.noted(jobs.asynchronous)).definition.executor == "async"


def test_options_of_the_decorator_count_over_those_of_the_application() -> None:
    app = Tenure("memory://", queue="all", max_attempts=9, backoff=2)
    job = app.job(queue="own", timeout=3)(jobs.ordinary)
    assert job.definition.options == JobDefaults(queue="own", max_attempts=9, timeout=3.0, backoff=fixed(2.0))
    assert job.definition.queue == "own"


def test_a_job_is_found_by_its_name_and_by_its_former_names(app: Tenure) -> None:
    job = app.job(name="mail.send", aliases=["send", "old.send"])(jobs.ordinary)
    assert [app.registry.get(name) for name in ("mail.send", "send", "old.send")] == [job.definition] * 3
    assert app.registry.get("builtins.eval") is None
    assert "send" in app.registry
    assert list(app.registry) == [job.definition]
    assert len(app.registry) == 1


def test_the_queues_of_an_application_are_those_of_its_jobs(app: Tenure) -> None:
    app.job(jobs.ordinary)
    app.job(queue="own")(jobs.asynchronous)
    assert app.registry.queues() == {"default", "own"}


# -------------------------------------------------------------------------------------------------------- being refused


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (lambda: None, "lambda"),
        (jobs.noted(jobs.asynchronous), None),
        (jobs.Holder.method, "method"),
        (jobs.Holder().method, "must be a function or a class"),
        (jobs.Holder.static, "method"),
        (jobs.generator, "generator"),
        (jobs.async_generator, "generator"),
        (jobs.WithoutHandle, "handle"),
        (print, "must be a function or a class, not builtin"),
        (3, "must be a function or a class, not int"),
        (jobs.add, "must be a function or a class, not SyncJob"),
    ],
)
def test_what_a_worker_could_not_run_is_refused(app: Tenure, target: Any, text: str | None) -> None:
    if text is None:
        app.job(target)
        return
    with pytest.raises(InvalidOption, match=text):
        app.job(target)
    assert len(app.registry) == 0


def test_what_stands_inside_a_function_is_refused_even_with_a_name(app: Tenure) -> None:
    def local() -> None: ...

    class Local:
        def handle(self) -> None: ...

    for target in (local, Local):
        with pytest.raises(InvalidOption, match="local"):
            app.job(name="named")(target)


def test_a_nested_class_is_taken(app: Tenure) -> None:
    app.job(jobs.Holder.Nested)
    assert app.bind(jobs.Holder.Nested()).name == "tests.unit.jobs.Holder.Nested"


def test_what_stands_in_main_needs_a_name(app: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs.ordinary, "__module__", "__main__")
    with pytest.raises(InvalidOption, match="__main__"):
        app.job(jobs.ordinary)
    assert app.job(name="ordinary")(jobs.ordinary).name == "ordinary"


@pytest.mark.parametrize("names", [("a", ()), ("b", ("a",)), ("b", ("c", "c")), ("b", ("b",)), ("b", ("old",))])
def test_a_name_that_is_taken_is_refused_and_nothing_is_registered(
    app: Tenure, names: tuple[str, tuple[str, ...]]
) -> None:
    app.job(name="a", aliases=["old"])(jobs.ordinary)
    with pytest.raises(InvalidOption, match="taken"):
        app.job(name=names[0], aliases=names[1])(jobs.asynchronous)
    assert len(app.registry) == 1
    assert app.registry.get("b") is None


@pytest.mark.parametrize("options", [{"name": "os system"}, {"name": ""}, {"aliases": "abc"}, {"aliases": ["a b"]}])
def test_a_hostile_name_is_refused(app: Tenure, options: Any) -> None:
    with pytest.raises(InvalidOption):
        app.job(**options)(jobs.ordinary)


@pytest.mark.parametrize("options", [{"dealy": 1}, {"delay": 1}, {"queue": ""}, {"priority": True}, {"retries": 3}])
def test_a_wrong_option_of_a_decorator_is_refused(app: Tenure, options: Any) -> None:
    with pytest.raises(InvalidOption):
        app.job(**options)(jobs.ordinary)


def test_an_executor_that_does_not_fit_is_refused(app: Tenure) -> None:
    with pytest.raises(InvalidOption, match="plain def"):
        app.job(executor="async")(jobs.ordinary)
    with pytest.raises(InvalidOption, match="async def"):
        app.job(executor="thread")(jobs.asynchronous)
    with pytest.raises(InvalidOption, match="executor must be"):
        app.job(executor="fiber")(jobs.asynchronous)  # type: ignore[call-overload]
    assert app.job(executor="thread")(jobs.ordinary).definition.executor == "thread"


@pytest.mark.parametrize("function", [jobs.ordinary, jobs.asynchronous])
def test_a_process_runs_functions_of_either_kind(app: Tenure, function: Any) -> None:
    definition = app.job(executor="process")(function).definition
    assert (definition.executor, definition.asynchronous) == ("process", function is jobs.asynchronous)


# ------------------------------------------------------------------------------------------------------------- services


def test_services_are_read_from_the_annotations() -> None:
    assert definition(jobs.send_welcome).injected == {"mailer": jobs.Mailer}
    assert definition(jobs.Report).injected == {"mailer": jobs.Mailer}
    assert definition(jobs.add).injected == {}


def test_a_service_that_cannot_be_filled_is_refused(app: Tenure) -> None:
    with pytest.raises(InvalidOption, match="keyword-only"):
        app.job(jobs.positional_service)
    with pytest.raises(InvalidOption, match="annotation"):
        app.job(jobs.nameless_service)


def test_pushing_a_service_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"'mailer' is injected"):
        jobs.send_welcome.bind("a", mailer=jobs.Mailer())


def test_an_annotation_that_cannot_be_resolved_is_told_by_name_and_takes_no_other_with_it() -> None:
    assert definition(jobs.unresolvable).injected == {}
    with pytest.raises(InvalidOption, match=r"'value' cannot be resolved .*Unknown"):
        jobs.unresolvable.bind(1)
    jobs.unresolvable_service.bind(1)
    with pytest.raises(InvalidOption, match=r"'service' cannot be resolved"):
        _ = definition(jobs.unresolvable_service).injected


# ------------------------------------------------------------------------------------------- from stored data to a call


def test_a_stored_call_of_a_function_is_loaded() -> None:
    loaded = definition(jobs.add).load(stored(jobs.add, [1], {"b": 2}))
    assert loaded.function(*loaded.args, **loaded.kwargs) == 3


async def test_a_stored_call_of_a_class_builds_it_and_runs_handle() -> None:
    call = jobs.app.bind(jobs.Report(5, draft=True))
    loaded = definition(jobs.Report).load(
        Envelope(v=1, id="x", name="n", queue="q", args=call.args, kwargs=call.kwargs)
    )
    assert (loaded.args, loaded.kwargs) == ((), {})
    assert await loaded.function(mailer="m") == "5 none True m"


# W5
def test_what_a_constructor_refuses_is_undecodable_and_not_shown() -> None:
    with pytest.raises(Undecodable, match=r"constructor of tests\.unit\.jobs\.Plain .*ValueError") as refusal:
        definition(jobs.Plain).load(stored(jobs.Plain, [-17]))
    assert "17" not in str(refusal.value)


def test_stored_arguments_that_do_not_fit_are_undecodable() -> None:
    with pytest.raises(Undecodable):
        definition(jobs.add).load(stored(jobs.add, ["x"]))
    with pytest.raises(Undecodable):
        definition(jobs.send_welcome).load(stored(jobs.send_welcome, ["a"], {"mailer": 1}))


# --------------------------------------------------------------------------------------------------- instances as calls


@pytest.mark.parametrize(
    ("instance", "args", "kwargs"),
    [
        (jobs.Report(5, draft=True), b"[]", {"number": 5, "title": "none", "draft": True}),
        (jobs.Plain(2), b"[2]", {"word": "x"}),
        (jobs.Slotted(3), b"[]", {"number": 3}),
        (jobs.Structured(4), b"[]", {"number": 4}),
    ],
)
def test_the_arguments_of_an_instance_are_its_attributes(instance: Any, args: bytes, kwargs: dict[str, Any]) -> None:
    call = jobs.app.bind(instance)
    assert bytes(call.args) == args
    assert msgspec.json.decode(call.kwargs) == kwargs


def test_a_class_that_a_decorator_remade_is_still_its_job() -> None:
    found = definition(jobs.Slotted)
    assert found.target is jobs.Slotted
    assert found.registered is not jobs.Slotted
    loaded = found.load(stored(jobs.Slotted, [], {"number": 3}))
    assert loaded.function() == 3
    assert type(loaded.function.__self__) is jobs.Slotted  # type: ignore[attr-defined]


def test_an_argument_that_an_instance_does_not_keep_is_refused_by_name() -> None:
    with pytest.raises(NotEncodable, match=r"argument 'number'.*set self\.number"):
        jobs.app.bind(jobs.Forgetful(3))
    with pytest.raises(InvalidOption, match="InitVar 'number'"):
        jobs.app.bind(jobs.WithInitVar(4))
    with pytest.raises(InvalidOption, match=r"\*numbers"):
        jobs.app.bind(jobs.Variadic(1, 2))
