// The client against a running server, named by RANKSTREAM_URL. It has the experiment
// `boost` of the rankers `new` and `old`, and the model `m` of three features.
// RANKSTREAM_TOLD names a file for what was done here.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import test from "node:test";

import { Client, Refused } from "../dist/index.js";

const url = process.env.RANKSTREAM_URL;
const skip = url ? false : "RANKSTREAM_URL must name a running server";
const client = new Client({ url: url ?? "http://127.0.0.1:8088", timeoutMs: 60_000 });

const N_SESSIONS = 300;
const AT_ONCE = 20;
const told = { lists: 0, clicks: 0, repeats: 0, impressions: [] };

/** What both rankers return for every query: one puts what people want first. */
const RANKINGS = { old: ["c", "d", "e", "a", "b"], new: ["a", "b", "c", "d", "e"] };
const WANTED = new Set(["a", "b"]);

async function session(number) {
  const who = { session: `s${number}` };
  const list = await client.combine({
    experiment: "boost",
    rankings: RANKINGS,
    query_id: "Red  shoes",
    ...who,
  });
  assert.ok(list.takes_part);
  assert.equal(list.ranking.length, 4);
  told.lists += 1;
  told.impressions.push(list.impression_id);
  const { impression_id, query_id } = list;
  // Every third user clicks the first wanted item, every fifth clicks any.
  const position =
    number % 3 === 0
      ? 1 + list.ranking.findIndex((item) => WANTED.has(item))
      : number % 5 === 0
        ? 1 + (number % 4)
        : 0;
  if (!position) return;
  const click = { impression_id, query_id, position, event_id: randomUUID() };
  await client.click(click);
  told.clicks += 1;
  if (number % 10 === 0) {
    // As a service does that heard no answer; only the name makes it a repeat.
    await client.click({ ...click, at_ms: Date.now() + 1 });
    told.repeats += 1;
  }
}

test("two rankers are compared", { skip }, async () => {
  for (let from = 0; from < N_SESSIONS; from += AT_ONCE) {
    const batch = Array.from({ length: AT_ONCE }, (_, i) => session(from + i));
    await Promise.all(batch);
  }
  assert.equal(told.lists, N_SESSIONS);
});

test("items are ranked, written as numbers or packed", { skip }, async () => {
  const rows = Array.from({ length: 6 }, (_, i) => [i, 1, 0.5]);
  const asked = { model: "m", query_id: "red shoes", session: "s", k: 4 };
  const impression_id = randomUUID();
  const plain = await client.rank({
    ...asked,
    impression_id,
    exposures: true,
    items: rows.map((features, i) => ({ id: `d${i}`, features })),
  });
  assert.equal(new Set(plain.ranking).size, 4);
  assert.deepEqual([plain.impression_id, plain.model], [impression_id, "m"]);
  assert.equal(plain.exposures.length, 6);
  for (const rank of [0, 1, 2, 3]) {
    const shown = plain.exposures.reduce((sum, row) => sum + row[rank], 0);
    assert.ok(Math.abs(shown - 1) < 1e-5, `${shown}`);
  }
  const packed = await client.rank({
    ...asked,
    items: rows.map((features, i) => ({ id: `d${i}`, features: new Float32Array(features) })),
  });
  assert.equal(packed.version, plain.version);
  assert.notEqual(packed.impression_id, plain.impression_id);
  // A whole list may be spread into a click.
  assert.equal((await client.click({ ...plain, item_id: plain.ranking[1] })).clicks, 1);
  told.lists += 2;
  told.clicks += 1;
});

test("a service sends events of its own, twice", { skip }, async () => {
  const at_ms = Date.now();
  const list = { impression_id: randomUUID(), query_id: "own", at_ms, shown: ["x", "y"] };
  const click = { impression_id: list.impression_id, query_id: "own", at_ms };
  const events = [
    { ...list, seed: 2n ** 63n - 1n, session: "mine" },
    { ...click, item_id: "y", event_id: randomUUID() },
  ];
  for (let turn = 0; turn < 2; turn++) {
    const { queries, clicks } = await client.events(events);
    assert.deepEqual([queries, clicks], [1, 1]);
  }
  told.lists += 1;
  told.clicks += 1;
  told.repeats += 2;
  told.own = list.impression_id;
});

test("what it refuses, it says", { skip }, async () => {
  const event = { impression_id: "i", query_id: "q", at_ms: Date.now(), shown: ["a"] };
  const bad = await client.events([event, { ...event, shown: [] }]).catch((e) => e);
  assert.ok(bad instanceof Refused);
  assert.deepEqual(bad.rejected.map((each) => each.index), [1]);
  assert.equal(bad.rejected[0].code, "shown");
  const items = [{ id: "a", features: [1, 2, 3] }];
  const asked = { model: "none", query_id: "q", items };
  await assert.rejects(client.rank(asked), { status: 404, code: "model" });
  const short = [{ id: "a", features: [1] }];
  await assert.rejects(client.rank({ ...asked, model: "m", items: short }), Refused);
});

test.after(() => {
  if (process.env.RANKSTREAM_TOLD) {
    writeFileSync(process.env.RANKSTREAM_TOLD, JSON.stringify(told));
  }
});
