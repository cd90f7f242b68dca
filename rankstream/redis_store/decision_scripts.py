"""The scripts by which decisions lie in Redis, and what they answer.

`rankstream.redis_store.decision_store` says what the keys hold.
"""

from enum import Enum
from typing import NamedTuple

HELD = """
local function held(key)
  return redis.call('TYPE', key).ok == 'string' and redis.call('GET', key) or false
end
"""

CURRENT_DECISIONS = (
    HELD
    + """
local now = held(KEYS[1])
if not now then return false end
return {now, now ~= ARGV[1] and (held(KEYS[2]) or '')}
"""
)

SWITCH_DECISIONS = (
    HELD
    + """
local pointer, manifest, listed = KEYS[1], KEYS[2], KEYS[3]
local place, is_forced, expire_s, prefix = ARGV[1], ARGV[3] == '1', ARGV[4], ARGV[5]
local number = tonumber(string.match(place, '^(%d+)%.'))
local now = held(pointer)
local current = tonumber(string.match(now or '', '^(%d+)%.%x+$') or -1)
if current > number and not is_forced then return 'newer' end
local wanted = {}
for at = 6, #ARGV do
  if redis.call('TYPE', prefix .. ARGV[at]).ok ~= 'string' then return 'missing' end
  wanted[ARGV[at]] = true
end
if redis.call('TYPE', listed).ok ~= 'set' then redis.call('DEL', listed) end
for _, digest in ipairs(redis.call('SMEMBERS', listed)) do
  if not wanted[digest] then redis.call('EXPIRE', prefix .. digest, expire_s) end
end
redis.call('DEL', listed)
for at = 6, #ARGV do
  redis.call('PERSIST', prefix .. ARGV[at])
  redis.call('SADD', listed, ARGV[at])
end
redis.call('SET', manifest, ARGV[2])
redis.call('SET', pointer, place)
return 'moved'
"""
)

STANDING_DECISIONS = (
    HELD
    + """
local lacking = {}
for at = 2, #KEYS do
  local is_text = redis.call('TYPE', KEYS[at]).ok == 'string'
  if not is_text or redis.call('STRLEN', KEYS[at]) ~= tonumber(ARGV[at]) then
    lacking[#lacking + 1] = at - 1
  end
end
return {held(KEYS[1]) or '', held(KEYS[tonumber(ARGV[1])]) or '', unpack(lacking)}
"""
)

FORGET_DECISIONS = """
if redis.call('TYPE', KEYS[3]).ok == 'set' then
  for _, digest in ipairs(redis.call('SMEMBERS', KEYS[3])) do
    redis.call('DEL', ARGV[1] .. digest)
  end
end
return redis.call('DEL', unpack(KEYS))
"""


class HeldDecisions(NamedTuple):
    """What the pointer of a rule says, and the manifest that it leads to.

    `manifest` is None where the reader knows it, and empty where there is none.
    """

    place: str
    manifest: bytes | None


class DecisionStanding(NamedTuple):
    """What Redis has of a rewrite.

    `place` is empty of none. `lacking` are those pieces, by number, that are missing or
    of another length, `looked_at` is one that was read as a whole.
    """

    place: str
    looked_at: bytes
    lacking: frozenset[int]


class Switched(Enum):
    """What became of a rewrite: in force, a later one is, or shards of it are missing.

    What lies in Redis is the same as before but where it was moved.
    """

    MOVED = "moved"
    NEWER = "newer"
    MISSING = "missing"
