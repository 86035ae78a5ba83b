"""A real Kafka broker in a process of its own: one node that is broker and controller, made from locked jars.

It needs Java and nothing else. Its clients come from confluent-kafka.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from engine.spark.jars import jar_paths
from engine.spark.java import find_java
from tests.services import process
from tests.services.certificates import Authority

LOCK = Path(__file__).with_name("jars.json")
_START_SECONDS = 60.0
_CALL_SECONDS = 30.0
_SERVER = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={listeners}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,{secured}
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={login} required user_{user}="{password}";
log.dirs={folder}/data
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
message.max.bytes=20000000
log.retention.ms=-1
log.retention.check.interval.ms=1000
log.initial.task.delay.ms=1000
file.delete.delay.ms=1000
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""
# With TLS: whoever comes by another listener than PLAINTEXT may do what an entry of the access control list allows.
_ACCESS = """\
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
listener.name.sasl_ssl.sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512,PLAIN
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={scram} required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={scram} required;
listener.name.sasl_ssl.plain.sasl.jaas.config={login} required user_{user}="{password}";
listener.name.mutual.ssl.client.auth=required
listener.name.mutual.ssl.truststore.type=PEM
listener.name.mutual.ssl.truststore.certificates={ca}
listener.name.mutual.ssl.principal.mapping.rules=RULE:^CN=(.*)$/$1/
"""
_TLS = """\
listener.name.{name}.ssl.keystore.type=PEM
listener.name.{name}.ssl.keystore.certificate.chain={certificate}
listener.name.{name}.ssl.keystore.key={key}
"""
_SECURED = {"SASL_SSL": "SASL_SSL", "SSL": "SSL", "MUTUAL": "SSL", "EXPIRED": "SSL", "STRANGE": "SSL"}
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
USER, PASSWORD = "reader", 'correct "horse" \\ battery'
_PLAIN_LOGIN = {
    "login": _LOGIN,
    "user": USER,
    # Once for the login's own text, once for the properties.
    "password": PASSWORD.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\"),
}
# A client that outlives a broker that is stopped on purpose has nothing to say about it.
_QUIET = {"log_level": 0, "error_cb": lambda _: None}


@dataclass(slots=True)
class Broker(process.Service):
    """A broker over a folder; it can be stopped and started again, with what it holds.

    Attributes:
        folder: of its data, settings and log.
        authority: signs its certificates; it then listens with TLS too, and checks what users may do.
        ports: on the loopback interface, by listener; it keeps those it was made with.
    """

    folder: Path
    authority: Authority | None = None
    ports: dict[str, int] = field(default_factory=dict)
    _admin: AdminClient | None = None

    @property
    def address(self) -> str:
        """What clients call bootstrap servers."""
        return f"127.0.0.1:{self.ports['PLAINTEXT']}"

    @property
    def login_address(self) -> str:
        """Where USER logs in with PASSWORD."""
        return f"127.0.0.1:{self.ports['SASL_PLAINTEXT']}"

    def tls_address(self, listener: str = "SSL") -> str:
        """Where it listens with TLS.

        Args:
            listener: SSL; SASL_SSL: USER logs in with PASSWORD; MUTUAL: clients need a certificate; EXPIRED and
                STRANGE have a certificate that is no longer valid, or is another host's.
        """
        return f"127.0.0.1:{self.ports[listener]}"

    def start(self) -> Broker:
        """Start it, and wait until it answers."""
        if self.running:
            return self
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self.folder / "server.properties"
        if settings.exists():
            found = re.findall(r"(\w+)://127\.0\.0\.1:(\d+)", settings.read_text(encoding="utf-8"))
            self.ports = {name: int(port) for name, port in found}
        else:
            settings.write_text(self._settings(), encoding="utf-8")
            # As `StorageTool random-uuid` makes it, which would be another start of Java.
            name = base64.urlsafe_b64encode(b"0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
            self._java("kafka.tools.StorageTool", "format", "--standalone", "-t", name, "-c", str(settings))
        self._process = process.start([*self._command(), "kafka.Kafka", str(settings)], self.folder / "log.txt")
        process.wait_until_ready(
            self._process,
            lambda: _answers(self.ports["PLAINTEXT"]) and self._ready(),
            self.folder / "log.txt",
            _START_SECONDS,
        )
        return self

    @property
    def admin(self) -> AdminClient:
        """The client that changes topics."""
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.address, **_QUIET})
        return self._admin

    def create(self, topic: str, partitions: int = 1, **config: str) -> str:
        """Make a topic; configuration with underscores for dots."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        _done(self.admin.create_topics([NewTopic(topic, partitions, 1, config=settings)]))
        self._until(lambda: len(self.partitions(topic)) == partitions)
        return topic

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until it is gone."""
        _done(self.admin.delete_topics([topic]))
        self._until(lambda: not self.partitions(topic))

    def widen(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        _done(self.admin.create_partitions([NewPartitions(topic, partitions)]))
        self._until(lambda: len(self.partitions(topic)) == partitions)

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Delete the records of some partitions before an offset, as retention does."""
        marks = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
        _done(self.admin.delete_records(marks))

    def add_user(self, name: str, password: str, mechanism: str = "SCRAM-SHA-512") -> None:
        """Let a user log in with a password by a SCRAM mechanism."""
        kind = ScramMechanism.SCRAM_SHA_512 if mechanism.endswith("512") else ScramMechanism.SCRAM_SHA_256
        how = ScramCredentialInfo(kind, 4096)
        _done(self.admin.alter_user_scram_credentials([UserScramCredentialUpsertion(name, how, password.encode())]))

    def allow(self, user: str, operation: str, topic: str, *, prefix: bool = False) -> None:
        """Add an entry to the access control list: a user may do something with a topic, or all that begin so."""
        pattern = ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL
        entry = AclBinding(
            ResourceType.TOPIC, topic, pattern, f"User:{user}", "*", AclOperation[operation], AclPermissionType.ALLOW
        )
        _done(self.admin.create_acls([entry]))

    def partitions(self, topic: str) -> tuple[int, ...]:
        """The partitions of a topic; none if there is no such topic."""
        found = self.admin.list_topics(timeout=_CALL_SECONDS).topics.get(topic)
        return tuple(sorted(found.partitions)) if found is not None and found.error is None else ()

    def offsets(self, topic: str, *, first: bool = False) -> dict[int, int]:
        """The end (or first) offset of each partition."""
        wanted = OffsetSpec.earliest() if first else OffsetSpec.latest()
        deadline = time.monotonic() + _CALL_SECONDS
        while True:
            asked = {TopicPartition(topic, p): wanted for p in self.partitions(topic)}
            answers = self.admin.list_offsets(asked, request_timeout=_CALL_SECONDS)
            try:
                return {mark.partition: future.result(_CALL_SECONDS).offset for mark, future in answers.items()}
            except KafkaException as error:
                # Right after its start a broker may not have led a partition as far as its metadata say.
                if error.args[0].code() != KafkaError.UNKNOWN_LEADER_EPOCH or time.monotonic() > deadline:
                    raise

    def producer(self, **config: Any) -> Producer:
        """A producer; settings with underscores for dots."""
        own = {key.replace("_", "."): value for key, value in config.items()}
        return Producer(
            {"bootstrap.servers": self.address, **_QUIET, "linger.ms": 5, "message.max.bytes": 20_000_000, **own}
        )

    def send_in_transactions(self, topic: str, values: Mapping[str, bool]) -> None:
        """Send values to a topic of one partition, each in a transaction that is committed or (False) aborted.

        The marker of its end, a record too, is written after the broker has answered: it is waited for.
        """
        (end,) = self.offsets(topic).values()
        producer = self.producer(transactional_id=f"tx-{topic}")
        producer.init_transactions(_CALL_SECONDS)
        for value, committed in values.items():
            producer.begin_transaction()
            producer.produce(topic, value)
            producer.flush(_CALL_SECONDS)
            (producer.commit_transaction if committed else producer.abort_transaction)(_CALL_SECONDS)
        self._until(lambda: self.offsets(topic) == {0: end + 2 * len(values)})

    def send(self, topic: str, values: Iterable[Any], partition: int | None = None, **also: Any) -> None:
        """Send values (bytes, text, None, or what becomes JSON) and wait until they are stored."""
        producer = self.producer()
        put(producer, topic, values, partition, **also)
        assert producer.flush(_CALL_SECONDS) == 0

    def _settings(self) -> str:
        names = ["PLAINTEXT", "SASL_PLAINTEXT", *(_SECURED if self.authority else [])]
        self.ports = {name: process.free_port() for name in names}
        text = _SERVER.format(
            folder=self.folder,
            controller=process.free_port(),
            listeners=",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()),
            secured=",".join(f"{name}:{protocol}" for name, protocol in _SECURED.items()),
            **_PLAIN_LOGIN,
        )
        return text if self.authority is None else text + _secured(self.authority)

    def _command(self) -> list[str]:
        jars = jar_paths(["broker"], fetch=True, java=None, lock=LOCK)
        path = ":".join(str(jar) for jar in jars)
        return [str(find_java().path), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path]

    def _java(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run([*self._command(), *arguments], capture_output=True, check=False, timeout=_START_SECONDS)
        assert done.returncode == 0, f"{arguments}\n{done.stdout.decode()}\n{done.stderr.decode()}"
        return done

    def _ready(self) -> bool:
        try:
            return bool(self.admin.list_topics(timeout=1.0).brokers)
        except KafkaException:
            return False

    @staticmethod
    def _until(true: Any) -> None:
        deadline = time.monotonic() + _CALL_SECONDS
        while not true():
            assert time.monotonic() < deadline
            time.sleep(0.05)


def _secured(authority: Authority) -> str:
    """Settings of the listeners with TLS."""
    own, old = authority.issue("broker"), authority.issue("expired", expired=True)
    strange = authority.issue("strange", "DNS:kafka.example.com")
    served = dict.fromkeys(_SECURED, own) | {"EXPIRED": old, "STRANGE": strange}
    text = _ACCESS.format(scram=_SCRAM, ca=_one_line(authority.ca), **_PLAIN_LOGIN)
    return text + "".join(
        _TLS.format(name=name.lower(), certificate=_one_line(shown.certificate), key=_one_line(shown.key))
        for name, shown in served.items()
    )


def _one_line(pem: str) -> str:
    return pem.replace("\n", "\\n")


def put(producer: Producer, topic: str, values: Iterable[Any], partition: int | None = None, **also: Any) -> None:
    """Hand values to a producer."""
    place = {} if partition is None else {"partition": partition}
    for value in values:
        raw = value if value is None or isinstance(value, (bytes, str)) else json.dumps(value)
        while True:
            try:
                producer.produce(topic, raw, **place, **also)
            except BufferError:
                producer.poll(0.1)
            else:
                break


@contextlib.contextmanager
def running(folder: Path, authority: Authority | None = None) -> Iterator[Broker]:
    """A broker for as long as the block lasts."""
    broker = Broker(folder, authority)
    try:
        yield broker.start()
    finally:
        broker.stop()


def _done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        try:
            future.result(_CALL_SECONDS)
        except KafkaException as error:
            found: KafkaError = error.args[0]
            raise RuntimeError(f"{found.name()}: {found.str()}") from error


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.5):
        return True
    return False
