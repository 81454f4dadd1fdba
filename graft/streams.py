"""The JetStream stream and its one consumer: what they have to look like, and making them so.

Work queue, so that a message is gone once it is acknowledged. `discard: new`, so that a full stream refuses a
publish (the server's default would drop an accepted one). No age limit: a trigger waits for as long as the
daemon is down. The consumer is shared by all replicas and gives up on no message.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import APIError, NotFoundError, ServiceUnavailableError

from graft.errors import ConfigError, TransientError

DUPLICATE_WINDOW: Final = 120.0
# What a replica had in hand when it died goes to another one after this many seconds; one that lives and takes
# longer says so in time.
ACK_WAIT: Final = 4.0
CONSUMER: Final = "inbox"
# NATS 2.12, ADR-50.
_BATCHES_SINCE: Final = (2, 12)

# JetStream's error codes, from nats-server's server/errors.json.
STORE_FULL: Final = 10077
_NAME_IN_USE: Final = 10058
_SUBJECTS_OVERLAP: Final = 10065
_NO_STORAGE: Final = 10047
_REPLICAS: Final = frozenset({10074, 10005})
_CANNOT_UPDATE: Final = 10052


class StreamSettings(Struct, frozen=True, kw_only=True):
    """What an operator may choose of the stream."""

    max_bytes: int
    replicas: int = 1


def stream_name(prefix: str) -> str:
    return prefix.upper()


def takes_batches(client: Client) -> bool:
    """Whether the server that this client is connected to has atomic batches."""
    version = client.connected_server_version
    return (version.major, version.minor) >= _BATCHES_SINCE


def stream_config(prefix: str, settings: StreamSettings, *, batches: bool) -> StreamConfig:
    return StreamConfig(
        name=stream_name(prefix),
        description="Graft: webhook deliveries on their way to the database",
        subjects=[f"{prefix}.trigger.>"],
        retention=RetentionPolicy.WORK_QUEUE,
        storage=StorageType.FILE,
        discard=DiscardPolicy.NEW,
        max_age=0,
        max_bytes=settings.max_bytes,
        num_replicas=settings.replicas,
        duplicate_window=DUPLICATE_WINDOW,
        allow_atomic=True if batches else None,
    )


def consumer_config() -> ConsumerConfig:
    return ConsumerConfig(
        name=CONSUMER,
        durable_name=CONSUMER,
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=ACK_WAIT,
        # A message that reached a limit would stay in the stream and be delivered to nobody.
        max_deliver=-1,
        max_ack_pending=20_000,
    )


async def ensure(js: JetStreamContext, prefix: str, settings: StreamSettings, *, batches: bool) -> None:
    """Create the stream and the consumer, or change them to what they have to be.

    Several replicas may do so at once. Raises ConfigError where an operator has to act, TransientError when
    JetStream does not answer.
    """
    config = stream_config(prefix, settings, batches=batches)
    try:
        try:
            await js.add_stream(config)
        except APIError as error:
            if error.err_code != _NAME_IN_USE:
                raise
            await js.update_stream(config)
        await js.add_consumer(stream_name(prefix), consumer_config())
    except APIError as error:
        raise _explain(error, prefix) from None
    except (NatsError, TimeoutError, OSError) as error:
        raise TransientError(
            f"JetStream did not answer ({type(error).__name__})", reason="bus_unavailable"
        ) from None


def _explain(error: APIError, prefix: str) -> ConfigError | TransientError:
    name = stream_name(prefix)
    match error.err_code:
        case code if code == _SUBJECTS_OVERLAP:
            problem = (
                f"GRAFT_NATS_PREFIX: another stream takes {prefix}.trigger.> already; choose another prefix"
            )
        case code if code == _NO_STORAGE:
            problem = "GRAFT_STREAM_MAX_BYTES: more than JetStream may store (max_file_store, account limits)"
        case code if code in _REPLICAS:
            problem = "GRAFT_STREAM_REPLICAS: more than this NATS server or cluster can keep"
        case code if code == _CANNOT_UPDATE:
            problem = (
                f"GRAFT_NATS_PREFIX: the stream {name} exists and cannot become Graft's work queue; "
                "remove it once it is empty (nats stream rm) or choose another prefix"
            )
        case _ if isinstance(error, (NotFoundError, ServiceUnavailableError)):
            return TransientError(
                "JetStream did not answer; is it switched on in the server?", reason="bus_unavailable"
            )
        case _:
            problem = (
                f"NATS_URL: JetStream refused the stream {name} or its consumer (error {error.err_code})"
            )
    return ConfigError([problem])
