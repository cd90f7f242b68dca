"""The formats of files of events, by the names that a call or settings give them."""

AUTO, JSONL, PARQUET, CANONICAL = "auto", "jsonl", "parquet", "canonical"
YANDEX_SESSIONS, OBD, CSV = "yandex-sessions", "obd", "csv"
UBI, METARANK, CLOUD_EVENTS = "ubi", "metarank", "cloudevents"

FILE_FORMATS = (
    AUTO,
    JSONL,
    PARQUET,
    CANONICAL,
    YANDEX_SESSIONS,
    OBD,
    CSV,
    UBI,
    METARANK,
    CLOUD_EVENTS,
)
"""In the order in which help tells of them."""
