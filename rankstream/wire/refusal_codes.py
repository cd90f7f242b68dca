"""Codes of dead letters: what each means, and what to do about it.

Codes are stable: operators filter by them, and letters keep them for days.
`docs/refusals.md` has the same table.
"""

from enum import StrEnum

DECODE = "decode"
VALIDATE = "validate"
JOIN = "join"


NO_CODE = "unknown"
"""Stands for the code of a letter that has none."""


class Code(StrEnum):
    """Why an event became a dead letter; the value stands in the letter's header.

    Parameters
    ----------
    stage
        Which part of the pipeline refused it.
    meaning
        The rule that the event broke, as a fact.
    remedy
        What its sender or an operator does.
    """

    stage: str
    meaning: str
    remedy: str

    def __new__(cls, value: str, stage: str, meaning: str, remedy: str) -> "Code":
        """A member with its row of the table."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.stage, member.meaning, member.remedy = stage, meaning, remedy
        return member

    NOT_JSON = (
        "not-json",
        DECODE,
        "the bytes are no JSON in UTF-8, or nest too deep",
        "correct the client's encoder",
    )
    NOT_ADAPTED = (
        "not-adapted",
        DECODE,
        "the record is of another format, and its sender could not make an event of it",
        "correct what the reason names, or the options of the format "
        "(`docs/adapters.md`); a replay says the same again",
    )
    EMPTY = (
        "empty",
        DECODE,
        "the record holds nothing but white space",
        "send no records without a value",
    )
    EMPTY_BATCH = (
        "empty-batch",
        VALIDATE,
        "the array holds no event",
        "send no empty arrays",
    )
    BATCH = (
        "batch",
        VALIDATE,
        "the array holds more than 65,536 events; all of it is one letter",
        "send fewer events in a record",
    )
    BATCH_LETTERS = (
        "batch-letters",
        VALIDATE,
        "dead letters of the array could take more than 32 times its bytes; all of it "
        "is one letter",
        "send fewer events in a record, or shorter keys and headers",
    )
    MALFORMED = (
        "malformed",
        VALIDATE,
        "a field is missing, unknown or of another type",
        "correct the field that the reason names",
    )
    SCHEMA = (
        "schema",
        VALIDATE,
        "`schema` is the number of another release",
        "leave `schema` out, or give it the number that the reason names",
    )
    TIME = (
        "time",
        VALIDATE,
        "`at_ms` lies before 1970 or after the year 9999, or can only be seconds",
        "send milliseconds since 1970, not seconds or microseconds",
    )
    TIME_FUTURE = (
        "time-future",
        VALIDATE,
        "`at_ms` is more than `time.ahead_ms` ahead of when Kafka took the record",
        "set the client's clock; replay the letter once its time has come",
    )
    IDENTITY = (
        "identity",
        VALIDATE,
        "an id is empty or too long, or a click names neither item nor position",
        "send ids of 1 to 256 characters, queries of at most 4,096",
    )
    NO_ROUTE = (
        "no-route",
        VALIDATE,
        "`query_id` has no visible character, or a click has none and its impression "
        "id holds no route",
        "send `query_id` with every event",
    )
    SEGMENT = (
        "segment",
        VALIDATE,
        "the attribute that `ingestion.segment` names is missing, is no text of 1 to "
        "256 characters, or has no visible one",
        "send it with every list, or take the setting out and replay the letters",
    )
    POLICY = (
        "policy",
        VALIDATE,
        "`policy` is none of those in `docs/events.md`",
        "send one of them; `unknown` is one",
    )
    SHOWN = (
        "shown",
        VALIDATE,
        "`shown` is empty, longer than 1,000, names an item twice, or one that is no "
        "candidate",
        "send what was shown, and all of it among the candidates",
    )
    CANDIDATES = (
        "candidates",
        VALIDATE,
        "`candidates` has an item twice, or is missing where scores, exposures or the "
        "policy need it",
        "send all items that were ranked, each once",
    )
    TOO_MANY_DOCUMENTS = (
        "too-many-documents",
        VALIDATE,
        "there are more candidates than `limits.documents`",
        "send fewer candidates, or raise the setting and replay the letters",
    )
    SCORES = (
        "scores",
        VALIDATE,
        "`scores` are not one finite number for each candidate, or are missing with "
        "`plackett-luce`",
        "send the scores by which the list was drawn",
    )
    EXPOSURES = (
        "exposures",
        VALIDATE,
        "`exposures` are not candidates x ranks, are no probabilities, or are missing "
        "with `logged`",
        "send rows and columns that sum to at most 1",
    )
    FEATURES = (
        "features",
        VALIDATE,
        "`features` are not one row of finite numbers for each shown item",
        "send rows of one length, in displayed order",
    )
    CANDIDATE_FEATURES = (
        "candidate_features",
        VALIDATE,
        "`candidate_features` are not one row of finite numbers for each candidate, or "
        "`features_hash` is no hash of theirs",
        "send the event that `rankstream.ranker` made, unchanged",
    )
    RANKS = (
        "ranks",
        VALIDATE,
        "`ranks` are not ranks of each shown item by one ranker or more",
        "send the event that `rankstream.ranker` made, unchanged",
    )
    ASSIGNMENTS = (
        "assignments",
        VALIDATE,
        "`assignments` are not one number from -1 to 999 for each shown item",
        "send the event that `rankstream` made, unchanged",
    )
    EXPERIMENT = (
        "experiment",
        VALIDATE,
        "the epoch of the experiment is not 1 or more, or takes more than 31 bits",
        "send the event that `rankstream.experiments` made, unchanged",
    )
    ATTRIBUTES = (
        "attributes",
        VALIDATE,
        "`attributes` nest deeper than 16 levels, or have integers beyond 64 bits",
        "send less, or such integers as text",
    )
    POSITION = (
        "position",
        VALIDATE,
        "`position` is not 1 to `limits.documents`",
        "send the rank on the page, counted from 1",
    )
    TOO_LARGE = (
        "too-large",
        VALIDATE,
        "a click takes more than 64 KiB, or a list as the log has it more than 8 MiB",
        "send fewer attributes, features or candidates",
    )
    NOT_SHOWN = (
        "not-shown",
        JOIN,
        "the list of the click has no such item or position, or another item there",
        "compare the letter with its list; a replay does not count it",
    )
    TOO_MANY_CLICKS = (
        "too-many-clicks",
        JOIN,
        "the clicks of one list exceed `limits.clicks` or `limits.click_bytes`",
        "look for robots; a replay does not count it",
    )
