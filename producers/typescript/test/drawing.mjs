// Numbers of a seed, and lists of experiments, from docs/contract/README.md alone.

const MASK32 = 0xffffffffn;
const MASK64 = (1n << 64n) - 1n;
const MASK128 = (1n << 128n) - 1n;
const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;

/** Words of 32 bits that a seed gives the generator. */
function seedWords(seed, n) {
  const entropy = [];
  for (let left = seed; left > 0n; left >>= 32n) entropy.push(left & MASK32);
  let constant = 0x43b0d7e5n;
  const hashed = (word) => {
    let value = word ^ constant;
    constant = (constant * 0x931e8875n) & MASK32;
    value = (value * constant) & MASK32;
    return value ^ (value >> 16n);
  };
  const mixed = (x, y) => {
    const value = (0xca01f9ddn * x - 0x4973f715n * y) & MASK32;
    return value ^ (value >> 16n);
  };
  const pool = [0, 1, 2, 3].map((i) => hashed(entropy[i] ?? 0n));
  for (let from = 0; from < 4; from++) {
    for (let to = 0; to < 4; to++) {
      if (from !== to) pool[to] = mixed(pool[to], hashed(pool[from]));
    }
  }
  let other = 0x8b51f9ddn;
  return Array.from({ length: n }, (_, i) => {
    let value = pool[i % 4] ^ other;
    other = (other * 0x58f38dedn) & MASK32;
    value = (value * other) & MASK32;
    return value ^ (value >> 16n);
  });
}

/** A function that gives the next number in [0, 1). */
export function uniforms(seed) {
  const words = seedWords(seed, 8);
  const [a, b, c, d] = [0, 2, 4, 6].map((i) => words[i] | (words[i + 1] << 32n));
  const increment = ((((c << 64n) | d) << 1n) | 1n) & MASK128;
  const step = (state) => (state * MULTIPLIER + increment) & MASK128;
  let state = step((step(0n) + ((a << 64n) | b)) & MASK128);
  return () => {
    state = step(state);
    const word = ((state >> 64n) ^ state) & MASK64;
    const by = state >> 122n;
    const turned = ((word >> by) | (word << (64n - by))) & MASK64;
    return Number(turned >> 11n) / 2 ** 53;
  };
}

/** What methods draw by: a choice of n alike, and a number in [0, 1). */
export function chances(next) {
  return { choose: (n) => Math.floor(next() * n), uniform: next };
}

/** By code points, as names of rankers are sorted. */
export function byCodePoints(a, b) {
  const [left, right] = [a, b].map((name) => [...name].map((c) => c.codePointAt(0)));
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (left[i] !== right[i]) return left[i] - right[i];
  }
  return left.length - right.length;
}

/** Lists without repeats, in the order of their rankers' numbers. */
export function numbered(rankings) {
  return Object.keys(rankings)
    .sort(byCodePoints)
    .map((name) => [...new Set(rankings[name])]);
}

function teamDraft(lists, length, { choose }) {
  const lengths = lists.map((list) => list.length).filter(Boolean);
  const nFair = lengths.length ? Math.min(...lengths) : 0;
  const present = lists.filter((list) => list.length);
  let nShared = 0;
  while (nShared < nFair && present.every((list) => list[nShared] === present[0][nShared])) {
    nShared += 1;
  }
  const order = lists.map((_, ranker) => ranker);
  const shown = [];
  const assignments = [];
  const best = (ranker) => lists[ranker].find((item) => !shown.includes(item));
  while (shown.length < length && lists.some((_, ranker) => best(ranker) !== undefined)) {
    for (let turn = 0; turn < order.length; turn++) {
      const other = turn + choose(order.length - turn);
      [order[turn], order[other]] = [order[other], order[turn]];
      const item = best(order[turn]);
      if (item === undefined) continue;
      const counts = shown.length >= nShared && shown.length < nFair;
      assignments.push(counts ? order[turn] : -1);
      shown.push(item);
      // The shared prefix is everybody's: whoever came last, all draw anew behind it.
      if (shown.length === length || shown.length === nShared) break;
    }
  }
  return { shown, assignments };
}

function pairwise(lists, length, { choose }) {
  const seen = new Set();
  const free = [];
  const shown = [];
  for (let place = 0; place < length; place++) {
    for (const list of lists) {
      const item = list[place];
      if (item === undefined || seen.has(item)) continue;
      seen.add(item);
      free.push(item);
    }
    if (!free.length) break;
    const chosen = choose(free.length);
    shown.push(free[chosen]);
    free[chosen] = free[free.length - 1];
    free.pop();
  }
  return { shown, assignments: null };
}

function probabilistic(lists, length, { choose, uniform }, { tau = 3 }) {
  const shown = [];
  while (shown.length < length) {
    const left = lists
      .map((list) => list.map((item, i) => [item, (i + 1) ** -tau]))
      .map((list) => list.filter(([item]) => !shown.includes(item)))
      .filter((list) => list.length);
    if (!left.length) break;
    const chosen = left[choose(left.length)];
    let target = uniform() * chosen.reduce((sum, [, mass]) => sum + mass, 0);
    const found = chosen.find(([, mass]) => (target -= mass) < 0) ?? chosen.at(-1);
    shown.push(found[0]);
  }
  return { shown, assignments: null };
}

function balanced(lists, length, { choose }) {
  const first = 1 - choose(2);
  const shown = new Set();
  for (let place = 0; place < Math.max(...lists.map((list) => list.length)); place++) {
    for (const list of [lists[first], lists[1 - first]]) {
      if (place < list.length && shown.size < length) shown.add(list[place]);
    }
  }
  return { shown: [...shown], assignments: null };
}

function split(lists, length, { choose }) {
  const able = lists.flatMap((list, ranker) => (list.length ? [ranker] : []));
  if (!able.length) return { shown: [], assignments: [] };
  const ranker = able[choose(able.length)];
  const shown = lists[ranker].slice(0, length);
  return { shown, assignments: shown.map(() => ranker) };
}

export const METHODS = {
  "team-draft": teamDraft,
  "sample-scored": (...asked) => ({ shown: teamDraft(...asked).shown, assignments: null }),
  "pairwise-preference": pairwise,
  probabilistic,
  balanced,
  "debiased-balanced": balanced,
  ab: split,
};

/** Every list that a method of choices may show, with its probability. */
export function* everyList(method, lists, length) {
  const path = [];
  for (;;) {
    let depth = 0;
    let probability = 1;
    const choose = (n) => {
      if (depth === path.length) path.push([0, n]);
      probability /= n;
      return path[depth++][0];
    };
    const { shown } = METHODS[method](lists, length, { choose });
    yield { shown, probability };
    while (path.length && path.at(-1)[0] === path.at(-1)[1] - 1) path.pop();
    if (!path.length) return;
    path.at(-1)[0] += 1;
  }
}
