"""The scripts that Redis runs, each one step for everybody else, and what it answers.

`rankstream.snapshots` says what the keys hold. A key of another type than it must have
is never an error here: readers find nothing in it, and writers replace it.
"""

from typing import NamedTuple

from rankstream.wire.envelope import Pointer

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

PUBLISH = """
local pointer, versions, models = KEYS[1], KEYS[2], KEYS[3]
local keep, model, prefix = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local now, moved = redis.call('GET', pointer), 0
local e, v = -1, -1
if now then
  local first, second = string.match(now, '^(%d+)%.(%d+)$')
  if first then e, v = tonumber(first), tonumber(second) end
end
for at = 4, #ARGV, 2 do
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
  redis.call('PUBLISH', pointer, now)
end
return moved
"""

CURRENT = """
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then return false end
if kind ~= 'string' then return {kind} end
local now = redis.call('GET', KEYS[1])
if now == ARGV[1] then return {now} end
if redis.call('TYPE', ARGV[2] .. now).ok ~= 'string' then return {now, ''} end
return {now, redis.call('GET', ARGV[2] .. now)}
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
for at = 1, #ARGV, 2 do
  local pointer, versions = KEYS[at + 1], KEYS[at + 2]
  local model, prefix = ARGV[at], ARGV[at + 1]
  local why, now = fault(pointer, versions), ''
  if why ~= '' then clear(pointer, versions, prefix) else
    now = redis.call('GET', pointer) or ''
    if now ~= '' and kind(prefix .. now) ~= 'string' then why = 'missing' end
    if now ~= '' and redis.call('SISMEMBER', models, model) == 0 then
      redis.call('SADD', models, model)
    end
  end
  found[#found + 1], found[#found + 2] = now, why
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
    """What a model's pointer leads to.

    `fault` is empty where it leads to a snapshot, `missing` where to none; else it says
    what was wrong with what Redis held, which was cleared. Without a pointer there is
    none, now.
    """

    pointer: Pointer | None
    fault: str
