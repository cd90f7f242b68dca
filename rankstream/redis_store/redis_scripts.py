"""The scripts that Redis runs, each one step for everybody else, and what it answers.

`rankstream.snapshots` says what the keys hold. A key of another type than it must have
is never an error here: readers find nothing in it, and writers replace it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rankstream.wire.envelope import (
    Pointer,
    Snapshot,
    decode_snapshot,
    pointer_from,
)

BATCH_BYTES = 4 * 1024 * 1024
"""Several versions go to Redis in one script up to about this size."""

CLEAR = """
local function kind(key) return redis.call('TYPE', key).ok end
local function clear(pointer, versions, prefix)
  if kind(versions) == 'list' then
    for _, name in ipairs(redis.call('LRANGE', versions, 0, -1)) do
      redis.call('DEL', prefix .. name)
    end
  end
  if kind(pointer) == 'string' then
    redis.call('DEL', prefix .. redis.call('GET', pointer))
  end
  redis.call('DEL', pointer, versions)
end
"""

MARK = """
local function mark_of(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'string' then return redis.sha1hex(redis.call('GET', key)) end
  return kind == 'none' and '' or kind
end
"""
"""Of a canary: the SHA-1 of its bytes, empty of none."""

PUBLISH = (
    MARK
    + """
local pointer, versions, models, canary = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local keep, model, prefix = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local held, wanted = ARGV[4], ARGV[5]
local now, moved = redis.call('GET', pointer), 0
local e, v = -1, -1
if now then
  local first, second = string.match(now, '^(%d+)%.(%d+)$')
  if first then e, v = tonumber(first), tonumber(second) end
end
for at = 6, #ARGV, 2 do
  local name = ARGV[at]
  local first, second = string.match(name, '^(%d+)%.(%d+)$')
  local epoch, version = tonumber(first), tonumber(second)
  local key = prefix .. name
  local is_newer = epoch > e or (epoch == e and version > v)
  if is_newer or (name == now and redis.call('TYPE', key).ok ~= 'string') then
    redis.call('SET', key, ARGV[at + 1])
    if redis.call('LINDEX', versions, -1) ~= name then
      redis.call('RPUSH', versions, name)
    end
    now, e, v, moved = name, epoch, version, moved + 1
  end
end
if moved > 0 then
  redis.call('SADD', models, model)
  redis.call('SET', pointer, now)
  while redis.call('LLEN', versions) > keep do
    redis.call('DEL', prefix .. redis.call('LPOP', versions))
  end
end
local is_swapped = false
if canary and (held == 'any' or held == mark_of(canary)) then
  if wanted == '' then is_swapped = redis.call('DEL', canary) > 0
  elseif mark_of(canary) ~= redis.sha1hex(wanted) then
    redis.call('SET', canary, wanted)
    is_swapped = true
  end
end
if moved > 0 or is_swapped then redis.call('PUBLISH', pointer, now or '') end
return moved
"""
)

CURRENT = """
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then return false end
if kind ~= 'string' then return {kind} end
local now = redis.call('GET', KEYS[1])
local envelope, canary = false, false
if now ~= ARGV[1] then
  local key = ARGV[2] .. now
  envelope = redis.call('TYPE', key).ok == 'string' and redis.call('GET', key) or ''
end
if KEYS[2] then
  local head, length = ARGV[3], tonumber(ARGV[4])
  if redis.call('TYPE', KEYS[2]).ok ~= 'string' then canary = ''
  elseif length == 0 or redis.call('STRLEN', KEYS[2]) ~= length
      or redis.call('GETRANGE', KEYS[2], 0, #head - 1) ~= head then
    canary = redis.call('GET', KEYS[2])
  end
end
return {now, envelope, canary}
"""

STANDING = """
local held = {}
for at = 1, #KEYS do
  held[at] = ''
  if redis.call('TYPE', KEYS[at]).ok == 'string' then
    local now = redis.call('GET', KEYS[at])
    if redis.call('TYPE', ARGV[at] .. now).ok == 'string' then held[at] = now end
  end
end
return held
"""

MEND = (
    CLEAR
    + MARK
    + """
local function fault(pointer, versions)
  local of_pointer, of_versions = kind(pointer), kind(versions)
  if of_pointer == 'none' then
    return of_versions ~= 'none' and 'versions without a pointer' or ''
  end
  if of_pointer ~= 'string' then return 'a pointer of type ' .. of_pointer end
  local now = redis.call('GET', pointer)
  local first, second = string.match(now, '^(%d+)%.(%d+)$')
  if not first or #first > 15 or #second > 15 then
    return 'a pointer that is no version'
  end
  if of_versions ~= 'list' then return 'versions of type ' .. of_versions end
  if redis.call('LINDEX', versions, -1) ~= now then
    return 'a pointer that is not to the last of the versions'
  end
  return ''
end
local models = KEYS[1]
if kind(models) ~= 'none' and kind(models) ~= 'set' then redis.call('DEL', models) end
local found = {}
for at = 1, #ARGV / 2 do
  local pointer, versions, canary = KEYS[3 * at - 1], KEYS[3 * at], KEYS[3 * at + 1]
  local model, prefix = ARGV[2 * at - 1], ARGV[2 * at]
  if kind(canary) ~= 'string' then redis.call('DEL', canary) end
  local why, now = fault(pointer, versions), ''
  if why ~= '' then clear(pointer, versions, prefix) else
    now = redis.call('GET', pointer) or ''
    if now ~= '' and kind(prefix .. now) ~= 'string' then why = 'missing' end
    if now ~= '' and redis.call('SISMEMBER', models, model) == 0 then
      redis.call('SADD', models, model)
    end
  end
  found[3 * at - 2], found[3 * at - 1], found[3 * at] = now, why, mark_of(canary)
end
return found
"""
)

DISCARD = (
    CLEAR
    + """
if kind(KEYS[1]) ~= 'string' or redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
clear(KEYS[1], KEYS[2], ARGV[2])
return 1
"""
)

DOCUMENTS = """
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then return {} end
return redis.call('HGETALL', KEYS[1])
"""

PUT_DOCUMENTS = """
for at = 1, #KEYS do
  local kind = redis.call('TYPE', KEYS[at]).ok
  if kind ~= 'none' and kind ~= 'hash' then redis.call('DEL', KEYS[at]) end
end
for at = 1, #ARGV, 4 do
  local key = KEYS[tonumber(ARGV[at])]
  if ARGV[at + 1] == 'put' then redis.call('HSET', key, ARGV[at + 2], ARGV[at + 3])
  else redis.call('HDEL', key, ARGV[at + 2]) end
end
return redis.status_reply('OK')
"""


class StoreUnavailable(RuntimeError):
    """Redis does not answer, or answers with an error.

    Operator action: look at Redis; publishing goes on when it is back.

    Attributes
    ----------
    is_answered
        Whether it answered, with an error: what else it is asked for may go well.
    """

    def __init__(self, said: str, *, is_answered: bool = False) -> None:
        super().__init__(said)
        self.is_answered = is_answered


class Standing(NamedTuple):
    """What a model's pointer leads to, and the mark of its canary.

    `fault` is empty where it leads to a snapshot, `missing` where to none; else it says
    what was wrong with what Redis held, which was cleared. Without a pointer there is
    none, now. `canary` is empty where there is none, now.
    """

    pointer: Pointer | None
    fault: str
    canary: str = ""


class Newest(NamedTuple):
    """What a model's pointer and its canary are, at one moment.

    `envelope` and `canary` are None where they are what the reader knows, and empty
    where there is none.
    """

    pointer: Pointer
    envelope: bytes | None
    canary: bytes | None


class CanarySwap(NamedTuple):
    """What a model's canary is to be: `wanted`, empty for none.

    Only where Redis holds what `held` is the mark of; whatever it holds for None.
    """

    held: str | None
    wanted: bytes


def mark_of(canary: bytes) -> str:
    """By what two records of canaries are told apart; empty of none."""
    if not canary:
        return ""
    return hashlib.sha1(canary, usedforsecurity=False).hexdigest()


def newest_from(answer: list[bytes | None]) -> Newest:
    """What the script answered.

    Raises
    ------
    SnapshotError
        Where the pointer is malformed.
    """
    pointer = pointer_from(answer[0] or b"")
    return Newest(pointer, *answer[1:])


def batches_of(
    envelopes: Sequence[bytes],
) -> Iterator[list[tuple[Snapshot, bytes]]]:
    """Versions of one model, so many that a script carries them; one batch at least.

    Raises
    ------
    SnapshotError
    """
    snapshots = [decode_snapshot(envelope) for envelope in envelopes]
    if len({snapshot.model for snapshot in snapshots}) > 1:
        raise ValueError("versions must be of one model; got several")
    start, size = 0, 0
    for end, envelope in enumerate(envelopes, 1):
        size += len(envelope)
        if size >= BATCH_BYTES and end < len(envelopes):
            yield list(zip(snapshots[start:end], envelopes[start:end], strict=True))
            start, size = end, 0
    yield list(zip(snapshots[start:], envelopes[start:], strict=True))
