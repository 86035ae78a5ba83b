"""What the exceptions of the client mean: a broker that is gone is unreachable, whatever the client calls it."""

from __future__ import annotations

import pytest

from engine.sources.connection import Connection
from engine.sources.kafka.cluster import Cause, rejection
from tests.sources.test_kafka_connection import closed, listening

TIMEOUT = Cause("TimeoutException", "Timed out waiting for a node assignment")
GONE = [
    [Cause("ExecutionException", ""), TIMEOUT],
    [Cause("TimeoutException", "")],
    [Cause("DisconnectException", "Cancelled describeTopics request")],
    [Cause("KafkaException", "Failed create new KafkaAdminClient")],
    [Cause("ExecutionException", ""), Cause("NotLeaderOrFollowerException", "moved")],
]
SECURED = {"security.protocol": "SASL_SSL"}


@pytest.mark.parametrize("causes", GONE)
@pytest.mark.parametrize("options", [{}, SECURED])
def test_a_stopped_broker_is_unreachable(causes: list[Cause], options: dict[str, str]) -> None:
    found = rejection(Connection("main", (("127.0.0.1", closed()),), options), causes).diagnostic
    assert (found.code, "no broker of the connection 'main' responds" in found.message) == ("kafka-unreachable", True)


def test_a_broker_that_hangs_is_unreachable_and_one_of_another_protocol_rejects() -> None:
    with listening() as port:
        servers = (("127.0.0.1", port),)
        assert rejection(Connection("main", servers), [TIMEOUT]).diagnostic.code == "kafka-unreachable"
        assert rejection(Connection("main", servers, SECURED), [TIMEOUT]).diagnostic.code == "kafka-rejected"


def test_what_a_broker_has_said_before_it_went_counts() -> None:
    gone = Connection("main", (("127.0.0.1", closed()),), SECURED, "ann")
    causes = [Cause("ExecutionException", ""), Cause("SaslAuthenticationException", "wrong password")]
    assert rejection(gone, causes).diagnostic.code == "kafka-rejected"
    assert rejection(gone, [Cause("TopicAuthorizationException", "no")], "t").diagnostic.code == "kafka-denied"
