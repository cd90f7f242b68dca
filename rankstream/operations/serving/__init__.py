"""HTTP for services that are not Python: events, rankings, combined lists, clicks.

What is answered with success lies in Kafka. Nothing is taken that a limit does not
bound: bytes, connections, seconds.
"""
