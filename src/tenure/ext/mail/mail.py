"""``app.mail``: pushes a message as one job."""

from collections.abc import Coroutine, Mapping, Sequence
from email.message import EmailMessage
from typing import TYPE_CHECKING, Annotated, Any, Final, Unpack

from tenure.call import Call
from tenure.errors import PayloadTooLarge
from tenure.ext.mail.errors import MailRefused
from tenure.ext.mail.letter import letter
from tenure.ext.mail.postman import ATTEMPTS, PATIENCE, Postman
from tenure.ext.mail.transports import check_name
from tenure.handle import JobHandle
from tenure.injection import Injected
from tenure.options import PushOptions
from tenure.portal import refuse_loop, require_loop
from tenure.sensitive import Sensitive

if TYPE_CHECKING:
    from tenure.app import Tenure

JOB: Final = "tenure.mail"


class Mail:
    """Mails of one application. Made by ``app.mail``."""

    def __init__(self, app: "Tenure") -> None:
        self._app = app
        self.postman: Postman = Postman(app)
        """Sends them, in the worker."""
        app.services.register_value(Mail, self)
        self._job = app.job(name=JOB, max_attempts=ATTEMPTS, backoff=PATIENCE, give_up_on=(MailRefused,))(deliver)

    def push(
        self,
        message: EmailMessage,
        *,
        via: str = "default",
        sender: str | None = None,
        recipients: Sequence[str] | None = None,
        **options: Unpack[PushOptions],
    ) -> Coroutine[Any, Any, JobHandle[None]]:
        """Store a message as one job that sends it via a transport of the worker's; await it.

        ``sender`` and ``recipients`` are those of the SMTP envelope; without them the message's ``Sender`` or ``From``
        and its ``To``, ``Cc`` and ``Bcc``, which is removed. The message is left as it is, and stored with a
        ``Message-ID`` and a ``Date``, so that all attempts send the same.

        Refuses at once, with ``WrongContext``, where no event loop runs, and with ``InvalidOption`` what is no mail.
        Raises ``PayloadTooLarge`` for attachments over the limit, and otherwise what ``app.push`` raises.
        """
        require_loop("push")
        return self._pushed(self._call(message, via, sender, recipients, {"id": "", **options}))

    def push_sync(
        self,
        message: EmailMessage,
        *,
        via: str = "default",
        sender: str | None = None,
        recipients: Sequence[str] | None = None,
        **options: Unpack[PushOptions],
    ) -> JobHandle[None]:
        """Do what ``push`` does, over a blocking connection; refuses inside a running event loop."""
        refuse_loop("push")
        call = self._call(message, via, sender, recipients, {"id": "", **options})
        try:
            return self._app.push_sync(call)
        except PayloadTooLarge as error:
            raise _too_large(error) from None

    def bind(
        self,
        message: EmailMessage,
        *,
        via: str = "default",
        sender: str | None = None,
        recipients: Sequence[str] | None = None,
        **options: Unpack[PushOptions],
    ) -> Call[None]:
        """Return the call, for ``app.push_many``; raises ``InvalidOption`` and ``NotEncodable``.

        It is one mail, with one ``Message-ID``: pushed twice, it is sent twice under that id.
        """
        return self._call(message, via, sender, recipients, options)

    async def follow(
        self,
        text: str,
        sender: str,
        recipients: list[str],
        via: str,
        series: str,
        rounds: int,
        options: dict[str, Any],
    ) -> None:
        """Push the job of recipients that another attempt left."""
        await self._app.push(self._job.options(**options).bind(text, sender, recipients, via, series, rounds))

    async def aclose(self) -> None:
        """Close the connections to the servers."""
        await self.postman.aclose()

    def _call(
        self,
        message: EmailMessage,
        via: str,
        sender: str | None,
        recipients: Sequence[str] | None,
        options: Mapping[str, Any],
    ) -> Call[None]:
        check_name(via, "via")
        ready = letter(message, sender=sender, recipients=recipients)
        # A mail without an id of its own has that of its series, so that the jobs of the rest are seen to belong to it.
        chosen: Any = {**options, "id": options["id"] or ready.series} if "id" in options else options
        return self._job.options(**chosen).bind(ready.text, ready.sender, ready.recipients, via, ready.series)

    async def _pushed(self, call: Call[None]) -> JobHandle[None]:
        try:
            return await self._app.push(call)
        except PayloadTooLarge as error:
            raise _too_large(error) from None


async def deliver(
    text: Annotated[str, Sensitive],
    sender: Annotated[str, Sensitive],
    recipients: Annotated[list[str], Sensitive],
    via: str,
    series: str,
    rounds: int = 0,
    *,
    mail: Mail = Injected,
) -> None:
    """Send a stored mail: the job ``tenure.mail``."""

    async def follow(rest: list[str], number: int, options: dict[str, Any]) -> None:
        await mail.follow(text, sender, rest, via, series, number, options)

    await mail.postman.deliver(text, sender, recipients, via=via, series=series, rounds=rounds, follow=follow)


def _too_large(error: PayloadTooLarge) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"the mail with its attachments does not fit into a job: {error}. Put what is large where its readers can "
        "fetch it and send a link, or let a job of its own make the attachment, or raise QUEUE_MAX_PAYLOAD_BYTES "
        "for all processes"
    )
