"""OpenTelemetry: a push, its claim, its run and its settlement as spans, through the API package alone.

::

    from tenure.ext.otel import instrument

    instrument(app)

Which SDK, exporter and sampler there are is the program's matter. Nothing else in tenure imports this package.
"""

from tenure.app import Tenure
from tenure.errors import InvalidOption, MissingExtra

try:
    from opentelemetry.trace import TracerProvider
except ImportError:
    raise MissingExtra("otel", "tenure.ext.otel") from None

from tenure.ext.otel.traces import Traces

__all__ = ["instrument"]


def instrument(app: Tenure, *, provider: TracerProvider | None = None, one_trace: bool = True) -> None:
    """Let an application's pushes, claims, runs and settlements be spans; a second time changes nothing.

    Args:
        app: the application; in the process that pushes, in the worker, or in both.
        provider: whose tracer is used; the global one otherwise, also when it is set later.
        one_trace: a run belongs to the trace of its push, as a child of it. Otherwise it begins a trace of its own,
            which links to the push: for jobs that run long after, or that push themselves again for ever.

    Raises ``InvalidOption`` when something else traces the application.
    """
    if isinstance(app.tracing, Traces):
        return
    if app.tracing is not None:
        raise InvalidOption("the application is traced by something else already")
    traces = Traces(provider)
    app.tracing = traces
    app.middleware(traces.runs(one_trace=one_trace))
