// The test vectors of docs/contract/vectors, computed once more.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { METHODS, chances, everyList, numbered, uniforms } from "./drawing.mjs";
import { crc32, hash, hash64, hex, identity, normalised } from "./hashes.mjs";

const folder = new URL("../../../docs/contract/vectors/", import.meta.url);

function casesOf(name) {
  const { cases } = JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8"));
  assert.ok(cases.length > 3 || name === "encodings", name);
  return cases;
}

test("queries, their routes, and ids that carry them", () => {
  for (const each of casesOf("routing")) {
    assert.equal(normalised(each.query_id), each.normalised);
    const route = hash64(each.normalised);
    assert.equal(route.toString(16).padStart(16, "0"), each.route);
    assert.equal(each.impression_id, `9f2c~${each.route}`);
    assert.equal(Number(route % 8n), each.partition_of_8);
    assert.equal(Number(route % 12n), each.partition_of_12);
  }
});

test("partitions of records", () => {
  for (const { key, value, ...partitions } of casesOf("partitions")) {
    for (const [name, partition] of Object.entries(partitions)) {
      const n = Number(name.split("_").at(-1));
      assert.equal(crc32(key || value) % n, partition, `${key} ${value} of ${n}`);
    }
  }
});

test("what tells a repeat", () => {
  for (const each of casesOf("identities")) {
    if (each.click === undefined) {
      assert.equal(identity("i", each.impression_id), each.identity);
      continue;
    }
    const { impression_id, at_ms, item_id = "", position = 0 } = each.click;
    const { action = "click", event_id } = each.click;
    const own = event_id
      ? identity("e", event_id)
      : identity("c", impression_id, item_id, `${position}`, action, `${at_ms}`);
    assert.equal(own, each.identity);
  }
});

test("groups of sessions", () => {
  for (const each of casesOf("units")) {
    const named = each.session
      ? `s${each.session}`
      : each.user
        ? `u${each.user}`
        : `i${each.impression_id}`;
    const unit = hash64(named);
    assert.equal(`${unit}`, each.unit);
    assert.equal(Number(unit % 20n), each.group_of_20);
    assert.equal(Number(unit % 100n), each.group_of_100);
  }
});

test("who takes part", () => {
  for (const { experiment, unit, takes_part } of casesOf("shares")) {
    const place = Number(hash64(`${experiment}\x1f${unit}`)) / 2 ** 64;
    for (const [share, isIn] of Object.entries(takes_part)) {
      assert.equal(place < Number(share), isIn, `${experiment} ${unit} ${share}`);
    }
  }
});

test("hashes of lists of features", () => {
  for (const { names, number, features_hash } of casesOf("features")) {
    const all = names ?? Array.from({ length: number }, (_, i) => `f${i + 1}`);
    assert.equal(hex(hash(all.join("\x1f"), 8)), features_hash);
  }
});

function decoded(base64, type) {
  const bytes = Buffer.from(base64, "base64");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const [size, read] = type === "uint16" ? [2, "getUint16"] : [4, "getFloat32"];
  return Array.from({ length: bytes.length / size }, (_, i) => view[read](size * i, true));
}

test("matrices in base64", () => {
  for (const { type, rows, base64 } of casesOf("encodings")) {
    const flat = rows.flat();
    const expected = type === "uint16" ? flat : flat.map(Math.fround);
    assert.deepEqual(decoded(base64, type), expected);
  }
});

test("numbers of a seed", () => {
  for (const each of casesOf("draws")) {
    const next = uniforms(BigInt(each.seed));
    assert.deepEqual(each.uniforms.map(() => next()), each.uniforms);
  }
});

for (const each of casesOf("lists")) {
  test(`list ${each.impression_id}`, () => {
    const { experiment, epoch, method, impression_id, length } = each;
    const seed = hash64(`${experiment}\x1f${epoch}\x1f${impression_id}`) >> 1n;
    assert.equal(`${seed}`, each.seed);
    const lists = numbered(each.rankings);
    const drawn = METHODS[method](
      lists,
      length,
      chances(uniforms(seed)),
      each.options ?? {},
    );
    assert.deepEqual(drawn.shown, each.shown);
    assert.deepEqual(drawn.assignments, each.assignments);
    assert.deepEqual(Object.values(each.logged_rankings), lists);
    checkEvent(each, drawn);
    if (each.exposures) checkExposures(each, lists);
  });
}

/** Everything but the seed, and exposures as they are packed. */
function checkEvent({ event, ...each }, { shown, assignments }) {
  const { exposures, policy, candidates, ...fields } = event;
  assert.deepEqual(fields, {
    impression_id: each.impression_id,
    query_id: "red shoes",
    at_ms: 1795257000000,
    session: "s81",
    shown,
    experiment: { id: each.experiment, epoch: each.epoch, method: each.method },
    rankings: each.logged_rankings,
    ...(assignments ? { assignments } : {}),
  });
  assert.deepEqual(candidates, each.candidates);
  assert.equal(policy, each.exposures ? "logged" : "multileave");
  if (each.exposures) {
    const cut = each.exposures.map((row) => row.slice(0, shown.length));
    assert.deepEqual(decoded(exposures, "float32"), cut.flat().map(Math.fround));
  } else {
    assert.equal(exposures, undefined);
  }
}

/** P(item at rank), summed over every list that may be drawn. */
function checkExposures({ method, length, candidates, exposures }, lists) {
  const found = candidates.map(() => new Array(length).fill(0));
  for (const { shown, probability } of everyList(method, lists, length)) {
    shown.forEach((item, rank) => {
      found[candidates.indexOf(item)][rank] += probability;
    });
  }
  exposures.flat().forEach((probability, i) => {
    assert.ok(Math.abs(found.flat()[i] - probability) < 1e-12, `cell ${i}`);
  });
}
