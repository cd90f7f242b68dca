"""Where tests have their services from, and what follows if there are none."""

import pytest

from tests.services import (
    KafkaService,
    RedisService,
    ServiceMissing,
    kafka_service,
    redis_service,
    without,
)


def test_an_address_in_the_environment_comes_first() -> None:
    """Nothing is started where somebody names a running service."""
    named = {
        "RANKSTREAM_TEST_KAFKA": "elsewhere:1",
        "RANKSTREAM_TEST_REDIS": "redis://elsewhere:2/0",
    }
    with kafka_service(named) as kafka, redis_service(named) as redis:
        assert kafka == KafkaService("elsewhere:1")
        assert redis == RedisService("redis://elsewhere:2/0")
        assert redis.port == 2


def test_a_missing_service_skips_by_hand() -> None:
    """With the reason."""
    with pytest.raises(pytest.skip.Exception, match="no Java"):
        without(ServiceMissing("no Java"), {})


def test_a_missing_service_fails_in_ci() -> None:
    """A green build has seen the real thing."""
    with pytest.raises(pytest.fail.Exception, match="must run in CI; no Java"):
        without(ServiceMissing("no Java"), {"CI": "true"})
