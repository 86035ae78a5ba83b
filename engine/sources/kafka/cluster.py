"""What a Kafka cluster has, asked through the client in Spark's JVM: topics, their ids, their offsets.

Why brokers reject a connection is read from the whole chain of causes, as the client wraps the reason in general words
("SSL handshake failed"), and becomes one error with its fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import SetupError, near
from engine.secrets.scrubber import scrub
from engine.sources.connection import Connection, reach
from engine.sources.kafka.topic_check import Topic
from engine.spark.internals.handles import jvm_of

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import SparkSession


PATIENCE_SECONDS = 20
_TIMEOUTS = {"TimeoutException", "TimeoutError"}
# Exceptions that a broker's answer causes, or the settings of the client.
_SAID = (
    "AuthorizationException", "AuthenticationException", "UnsupportedSaslMechanismException", "HandshakeException",
    "InvalidConfigurationException", "UnsupportedVersionException",
)  # fmt: skip
_LOOK_SECONDS = 2.0
_CLIENT_CERTIFICATE = "ssl.keystore.key"
# The alerts by which a broker ends a handshake because of the client's certificate, or for want of one.
_ALERT = re.compile(r"Received fatal alert: (bad_certificate|certificate_\w+|unknown_ca|access_denied)")
_OTHER_HOST = re.compile(r"No subject alternative|No name matching")
_PEM_HINT = (
    'Write the PEM text itself, from a variable: export KAFKA_KEY="$(cat key.pem)", "{{ env_var(\'KAFKA_KEY\') }}".'
)


@dataclass(frozen=True, slots=True)
class Cause:
    kind: str
    text: str


def rejection(connection: Connection, causes: Sequence[Cause], topic: str = "") -> SetupError:
    unreachable = _unreachable(connection, {cause.kind for cause in causes})
    code, message, hint = unreachable or _described(connection, causes, topic)
    return SetupError(code, scrub(message), hint)


def not_readable(connection: Connection, topic: str) -> SetupError:
    user = connection.user
    who = f"the user '{user}'" if user else "the client"
    message = f"{who} of the connection '{connection.name}' may not read"
    principal = user or "<name in the certificate>"
    hint = (
        f"Allow it: kafka-acls --bootstrap-server {connection.addresses} --add --allow-principal 'User:{principal}' "
        f"--operation Read --topic {topic or '<topic>'}"
    )
    return SetupError("kafka-denied", f"{message} the topic '{topic}'" if topic else f"{message} the cluster", hint)


def _described(connection: Connection, causes: Sequence[Cause], topic: str) -> tuple[str, str, str]:
    kinds = {cause.kind for cause in causes}
    brokers = f"the brokers of the connection '{connection.name}' ({connection.addresses})"
    if kinds & _TIMEOUTS:
        message = f"{brokers} did not respond within {PATIENCE_SECONDS} seconds"
        hint = "The port is open: check the brokers' log, and that 'security' of the connection matches the port."
        # A broker that hangs rejects nobody; one that speaks another protocol than the client does.
        return "kafka-rejected" if connection.options else "kafka-unreachable", message, hint
    if any(kind.endswith("AuthorizationException") for kind in kinds):
        diagnostic = not_readable(connection, topic).diagnostic
        return diagnostic.code, diagnostic.message, diagnostic.hint
    if kinds & {"SaslAuthenticationException", "UnsupportedSaslMechanismException"}:
        return _login(connection, brokers, causes)
    if "InvalidConfigurationException" in kinds:
        return _configuration(connection, causes)
    if kinds & {"SslAuthenticationException", "SSLHandshakeException"}:
        return _handshake(connection, brokers, causes)
    hint = "Correct the connection's settings in project.yml."
    return "kafka-rejected", f"{brokers} rejected the connection: {_deepest(causes)}", hint


def _unreachable(connection: Connection, kinds: set[str]) -> tuple[str, str, str] | None:
    """The error of brokers that are gone; None: one of them takes connections, or has said why it takes no other."""
    if any(kind.endswith(_SAID) for kind in kinds):
        return None
    try:
        reach(connection, _LOOK_SECONDS)
    except SetupError as error:
        diagnostic = error.diagnostic
        return diagnostic.code, diagnostic.message, diagnostic.hint
    return None


def _login(connection: Connection, brokers: str, causes: Sequence[Cause]) -> tuple[str, str, str]:
    message = f"{brokers} rejected the login of '{connection.user}': {_deepest(causes)}"
    hint = (
        "Correct 'username', 'password' and 'mechanism' under 'security:' of the connection; with SCRAM the brokers "
        "store a password for each mechanism."
    )
    return "kafka-rejected", message, hint


def _configuration(connection: Connection, causes: Sequence[Cause]) -> tuple[str, str, str]:
    reason = _deepest(causes)
    message = f"'security' of the connection '{connection.name}' has a certificate or key that cannot be read: {reason}"
    if "PBES2" in reason:
        # Java 17 reads keys that are encrypted by PKCS #12's older schemes only.
        hint = "Encrypt the key so that Java 17 reads it: openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES -in key.pem"
    else:
        hint = _PEM_HINT
    return "kafka-certificate", message, hint


def _handshake(connection: Connection, brokers: str, causes: Sequence[Cause]) -> tuple[str, str, str]:
    reason = _deepest(causes)
    texts = " ".join(cause.text for cause in causes)
    kinds = {cause.kind for cause in causes}
    certificate = f"the certificate of {brokers}"
    if kinds & {"CertificateExpiredException", "CertificateNotYetValidException"}:
        when = "has expired" if "CertificateExpiredException" in kinds else "is not valid yet"
        hint = "Have the brokers' certificate renewed; if it is valid, correct this machine's clock or 'ca'."
        return "kafka-certificate", f"{certificate} {when} ({reason})", hint
    if _OTHER_HOST.search(texts):
        hint = (
            "Write the name that is in the certificate in 'bootstrap_servers' (and in the brokers' "
            "advertised.listeners), or have a certificate issued for this one."
        )
        return "kafka-certificate", f"{certificate} is for another host ({reason})", hint
    if "PKIX path" in texts or "SunCertPathBuilderException" in kinds:
        hint = (
            "Set 'ca' under 'security:' of the connection to the PEM text of that authority: "
            'export KAFKA_CA="$(cat ca.pem)", ca: "{{ env_var(\'KAFKA_CA\') }}"'
        )
        trusted = "the one in 'ca'" if connection.options.get("ssl.truststore.certificates") else "one that Java knows"
        return "kafka-certificate", f"{certificate} is signed by another authority than {trusted}", hint
    if _ALERT.search(texts):
        return _of_client(connection, brokers, reason)
    hint = "Check that 'security' of the connection matches the brokers' listener."
    return "kafka-certificate", f"no TLS connection to {brokers}: {reason}", hint


def _of_client(connection: Connection, brokers: str, reason: str) -> tuple[str, str, str]:
    if _CLIENT_CERTIFICATE in connection.options:
        message = f"{brokers} do not accept the certificate of the client ({reason})"
        hint = "Have 'certificate' under 'security:' of the connection signed by an authority that the brokers trust."
    else:
        message = f"{brokers} ask for a certificate of the client ({reason})"
        hint = "Set 'certificate' and 'key' under 'security:' of the connection, both PEM texts."
    return "kafka-certificate", message, hint


def _deepest(causes: Sequence[Cause]) -> str:
    return next((cause.text.strip().rstrip(".") for cause in reversed(causes) if cause.text), causes[0].kind)


_ADMIN = "org.apache.kafka.clients.admin"
_MOST_CAUSES = 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster to be asked; every call ends within some seconds."""

    connection: Connection
    jvm: Any
    admin: Any

    @property
    def addresses(self) -> str:
        return self.connection.addresses

    def id(self) -> str:
        return str(self._wait(self.admin.describeCluster().clusterId()) or "")

    def names(self) -> tuple[str, ...]:
        """The names of all topics but Kafka's own."""
        return tuple(sorted(self._wait(self.admin.listTopics().names())))

    def matching(self, pattern: str) -> tuple[str, ...]:
        """The topics whose whole names match a Java pattern."""
        compiled = self.jvm.java.util.regex.Pattern.compile(pattern)
        return tuple(name for name in self.names() if compiled.matcher(name).matches())

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """The topics of some names.

        Raises SetupError: kafka-topic if one does not exist, kafka-denied if the user may not read one.
        """
        java_names = self.jvm.java.util.ArrayList()
        for name in names:
            java_names.add(name)
        # Who may describe a topic and not read it would learn that in the middle of a micro-batch.
        options = getattr(self.jvm, f"{_ADMIN}.DescribeTopicsOptions")().includeAuthorizedOperations(True)
        futures = self.admin.describeTopics(java_names, options).topicNameValues()
        topics_by_name = {}
        for name in names:
            about = self._wait(futures.get(name), name)
            if not _reads(about.authorizedOperations()):
                raise not_readable(self.connection, name)
            partitions = tuple(sorted(int(p.partition()) for p in about.partitions()))
            topics_by_name[name] = Topic(name, about.topicId().toString(), partitions)
        return topics_by_name

    def offsets(
        self, topics: Iterable[Topic], *, first: bool, isolation: str = "read_uncommitted"
    ) -> dict[str, dict[int, int]]:
        """The first or the end offset of every partition, as consumers of an isolation level see them."""
        spec = getattr(self.jvm, f"{_ADMIN}.OffsetSpec")
        offset_specs = self.jvm.java.util.HashMap()
        keys = {}
        for topic in topics:
            for partition in topic.partitions:
                key = self.jvm.org.apache.kafka.common.TopicPartition(topic.name, partition)
                keys[topic.name, partition] = key
                offset_specs.put(key, spec.earliest() if first else spec.latest())
        level = getattr(self.jvm.org.apache.kafka.common.IsolationLevel, isolation.upper())
        listed_offsets = self.admin.listOffsets(offset_specs, getattr(self.jvm, f"{_ADMIN}.ListOffsetsOptions")(level))
        offsets_by_topic: dict[str, dict[int, int]] = {}
        for (name, partition), key in keys.items():
            offset = self._wait(listed_offsets.partitionResult(key), name).offset()
            offsets_by_topic.setdefault(name, {})[partition] = int(offset)
        return offsets_by_topic

    def _wait(self, future: Any, topic: str = "") -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return future.get(PATIENCE_SECONDS, self.jvm.java.util.concurrent.TimeUnit.SECONDS)
        except Py4JJavaError as error:
            causes = _causes(error)
        if any(cause.kind == "UnknownTopicOrPartitionException" for cause in causes):
            hint = near(topic, self.names()) or "The broker has no topics yet."
            message = f"the topic '{topic}' does not exist (connection '{self.connection.name}')"
            raise SetupError("kafka-topic", message, hint)
        raise rejection(self.connection, causes, topic)


def _reads(operations: Any) -> bool:
    """Whether reading is among the operations of a topic that a user may do; brokers before 2.3 do not say."""
    return operations is None or any(str(operation.name()) in {"READ", "ALL"} for operation in operations)


def _causes(error: Py4JJavaError) -> list[Cause]:
    causes: list[Cause] = []
    exception = error.java_exception
    while exception is not None and len(causes) < _MOST_CAUSES:
        causes.append(Cause(str(exception.getClass().getSimpleName()), str(exception.getMessage() or "")))
        exception = exception.getCause()
    return causes


@contextmanager
def cluster(session: SparkSession, connection: Connection) -> Iterator[Cluster]:
    """The cluster of a connection, for some questions.

    Raises:
        SetupError: kafka-unreachable if no broker answers; kafka-rejected if it takes no login or protocol;
            kafka-certificate if there is no TLS connection.
    """
    from py4j.protocol import Py4JJavaError

    jvm = jvm_of(session)
    settings = jvm.java.util.HashMap()
    for key, value in {**_bounded(connection.client), "client.id": "headrace"}.items():
        settings.put(key, value)
    try:
        admin = getattr(jvm, f"{_ADMIN}.AdminClient").create(settings)
    except Py4JJavaError as error:
        raise rejection(connection, _causes(error)) from None
    try:
        yield Cluster(connection, jvm, admin)
    finally:
        admin.close(jvm.java.time.Duration.ofSeconds(1))


def _bounded(client: Mapping[str, str]) -> dict[str, str]:
    shared = ("bootstrap.servers", "security.", "ssl.", "sasl.", "client.dns", "reconnect.", "retry.", "socket.")
    own = {key: value for key, value in client.items() if key.startswith(shared)}
    patience = str(PATIENCE_SECONDS * 1000 - 1000)
    return {**own, "default.api.timeout.ms": patience, "request.timeout.ms": str(PATIENCE_SECONDS * 500)}
