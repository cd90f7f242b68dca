// The client against servers that fail in every way that servers do.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";

import { Client, RankstreamError, Refused, Unavailable, encodeFloats, toJson } from "../dist/index.js";

const CLICK = { impression_id: "i1", query_id: "q", position: 1 };
const TAKEN = { queries: 0, clicks: 1 };

/** A server that gives one answer after the other, the last one again and again. */
async function answering(t, ...answers) {
  const requests = [];
  const server = createServer((request, response) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => {
      const body = Buffer.concat(pieces).toString();
      requests.push({ path: request.url, headers: request.headers, body });
      const answer = answers[Math.min(requests.length, answers.length) - 1];
      answer(response, request);
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { requests, url: `http://127.0.0.1:${server.address().port}` };
}

const says = (status, content, headers = {}) => (response) => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(typeof content === "string" ? content : JSON.stringify(content));
};
const busy = says(503, { code: "busy", detail: "no room" }, { "retry-after": "0" });
const hangsUp = (response) => response.socket.destroy();
const isCut = (response) => {
  response.writeHead(200, { "content-length": "100" });
  response.write("{");
  setTimeout(() => response.socket.destroy(), 20);
};
const isSilent = () => {};

test("a click has a name and a time, and the token goes with it", async (t) => {
  const { requests, url } = await answering(t, says(202, TAKEN));
  const beforeMs = Date.now();
  const client = new Client({ url: `${url}/shop/`, token: async () => "secret" });
  assert.deepEqual(await client.click(CLICK), TAKEN);
  const [{ path, headers, body }] = requests;
  assert.equal(path, "/shop/v1/click");
  assert.equal(headers.authorization, "Bearer secret");
  const { event_id, at_ms, ...rest } = JSON.parse(body);
  assert.deepEqual(rest, CLICK);
  assert.match(event_id, /^[0-9a-f-]{36}$/);
  assert.ok(at_ms >= beforeMs && at_ms <= Date.now());
});

test("what may pass is asked again, with the same bytes", async (t) => {
  const failures = [busy, hangsUp, isCut, says(502, "<html>"), says(429, {}), says(200, "x"),
    ...[408, 425, 500, 504].map((status) => says(status, {}, { "retry-after": "0" }))];
  const { requests, url } = await answering(t, ...failures, says(202, TAKEN));
  const client = new Client({ url, timeoutMs: 120_000 });
  assert.deepEqual(await client.click(CLICK), TAKEN);
  assert.equal(requests.length, failures.length + 1);
  assert.equal(new Set(requests.map((each) => each.body)).size, 1);
});

test("lists and clicks of a batch get ids where they have none", async (t) => {
  const { requests, url } = await answering(t, says(200, { takes_part: false }));
  const client = new Client({ url });
  const lists = { rankings: { a: [], b: [] }, query_id: "q", session: "s" };
  const found = await client.combine({ experiment: "e", ...lists });
  assert.deepEqual(found, { takes_part: false });
  await client.rank({ model: "m", query_id: "q", items: [], impression_id: "mine" });
  await client.events([{ ...CLICK, at_ms: 5 }, { ...CLICK, at_ms: 6, event_id: "own" }]);
  const [combined, ranked, [first, second]] = requests.map((each) => JSON.parse(each.body));
  assert.match(combined.impression_id, /^[0-9a-f-]{36}$/);
  assert.equal(ranked.impression_id, "mine");
  assert.match(first.event_id, /^[0-9a-f-]{36}$/);
  assert.deepEqual([first.at_ms, second.at_ms, second.event_id], [5, 6, "own"]);
});

test("the session goes with a list, and the stage of its canary comes back", async (t) => {
  const list = { impression_id: "i", query_id: "q", ranking: ["a"], model: "m",
    version: 9, intervention: "m@1.9", policy: "plackett-luce", canary: "m@1.9/1" };
  const { requests, url } = await answering(t, says(200, list), says(202, TAKEN));
  const client = new Client({ url });
  const asked = { model: "m", query_id: "q", items: [], session: "s81" };
  const found = await client.rank(asked);
  assert.deepEqual([found.intervention, found.canary], ["m@1.9", "m@1.9/1"]);
  await client.click({ ...found, item_id: "a" });
  const [ranked, { event_id, at_ms, ...clicked }] = requests.map((x) => JSON.parse(x.body));
  assert.equal(ranked.session, "s81");
  assert.deepEqual(clicked, { impression_id: "i", query_id: "q", item_id: "a" });
});

test("what is refused is not asked again, and says why", async (t) => {
  const rejected = [{ index: 1, code: "shown", reason: "shown must hold items" }];
  const problem = { title: "", status: 422, code: "rejected", detail: "1 of 2", rejected };
  const { requests, url } = await answering(t, says(422, problem), says(413, "too large"));
  const client = new Client({ url });
  const error = await client.events([]).catch((caught) => caught);
  assert.ok(error instanceof Refused);
  assert.deepEqual([error.status, error.code, error.detail], [422, "rejected", "1 of 2"]);
  assert.deepEqual(error.rejected, rejected);
  assert.match(error.message, /1 of 2 \(rejected, status 422\)/);
  await assert.rejects(client.click(CLICK), { status: 413, detail: "too large" });
  assert.equal(requests.length, 2);
});

test("who gives up tells what was sent, so that it can be sent again", async (t) => {
  const { requests, url } = await answering(t, busy);
  const error = await new Client({ url, timeoutMs: 400 }).click(CLICK).catch((e) => e);
  assert.ok(error instanceof Unavailable);
  assert.match(error.message, /503: no room|an attempt took too long/);
  assert.equal(error.attempts, requests.length);
  assert.ok(error.attempts > 1);
  assert.deepEqual(error.request, JSON.parse(requests[0].body));
});

test("it waits as long as it was told to, and no longer than it may", async (t) => {
  const later = says(503, { detail: "later" }, { "retry-after": "1" });
  const { requests, url } = await answering(t, later, says(202, TAKEN));
  const startedMs = Date.now();
  await new Client({ url }).click(CLICK);
  assert.ok(Date.now() - startedMs >= 1_000);
  const tomorrow = says(503, {}, { "retry-after": new Date(Date.now() + 1e8).toUTCString() });
  const other = await answering(t, tomorrow);
  await assert.rejects(new Client({ url: other.url }).click(CLICK), {
    name: "Unavailable",
    message: /^no answer after 1 attempt; /,
  });
  assert.deepEqual([requests.length, other.requests.length], [2, 1]);
});

test("a silent server is given up, attempt by attempt", async (t) => {
  const { requests, url } = await answering(t, isSilent);
  const client = new Client({ url, timeoutMs: 1_000, attemptMs: 200 });
  const startedMs = Date.now();
  await assert.rejects(client.click(CLICK), /an attempt took too long/);
  assert.ok(requests.length >= 2 && requests.length <= 5, `${requests.length}`);
  assert.ok(Date.now() - startedMs < 1_900);
});

test("where nobody listens", async () => {
  const client = new Client({ url: "http://127.0.0.1:1", timeoutMs: 300 });
  await assert.rejects(client.click(CLICK), (error) => error instanceof Unavailable);
});

test("a signal ends a call, before it, in it, and between attempts", async (t) => {
  const { requests, url } = await answering(t, isSilent, says(503, {}, { "retry-after": "5" }));
  const client = new Client({ url });
  const reason = new Error("the page is gone");
  await assert.rejects(client.click(CLICK, { signal: AbortSignal.abort(reason) }), reason);
  for (const afterMs of [50, 200]) {
    const ends = new AbortController();
    setTimeout(() => ends.abort(reason), afterMs);
    await assert.rejects(client.click(CLICK, { signal: ends.signal }), reason);
  }
  assert.equal(requests.length, 2);
});

test("a token that never comes is waited for no longer than an answer", async (t) => {
  const { requests, url } = await answering(t, says(202, TAKEN));
  const never = () => new Promise(() => {});
  const client = new Client({ url, token: never, timeoutMs: 400, attemptMs: 100 });
  await assert.rejects(client.click(CLICK), (error) => error instanceof Unavailable);
  const reason = new Error("the page is gone");
  const ends = new AbortController();
  setTimeout(() => ends.abort(reason), 50);
  const patient = new Client({ url, token: never });
  await assert.rejects(patient.click(CLICK, { signal: ends.signal }), reason);
  assert.equal(requests.length, 0);
});

test("a token that no header can hold is refused, and not repeated", async (t) => {
  const { requests, url } = await answering(t, says(202, TAKEN));
  for (const token of ["secret\nsecret", "secret\0", "secret\u2026"]) {
    for (const given of [token, async () => token]) {
      const error = await new Client({ url, token: given }).click(CLICK).catch((e) => e);
      assert.ok(error instanceof RankstreamError && !(error instanceof Unavailable));
      assert.match(error.message, /^token must be/);
      assert.doesNotMatch(error.message, /secret/);
    }
  }
  assert.equal(requests.length, 0);
});

test("a token goes nowhere else", async (t) => {
  const elsewhere = await answering(t, says(202, TAKEN));
  const { url } = await answering(t, says(307, "", { location: `${elsewhere.url}/v1/click` }));
  const client = new Client({ url, token: "secret", timeoutMs: 300 });
  await assert.rejects(client.click(CLICK));
  assert.equal(elsewhere.requests.length, 0);
});

test("addresses that are none are refused", () => {
  assert.throws(() => new Client({ url: "ftp://example.org" }), /http: or https:/);
  assert.throws(() => new Client({ url: "http://me:pw@127.0.0.1" }), /no credentials/);
  assert.throws(() => new Client({ url: "127.0.0.1" }), TypeError);
});

test("numbers of 64 bits, typed arrays, and numbers that JSON has none for", async (t) => {
  const seed = 2n ** 63n - 1n;
  assert.equal(toJson({ seed, other: -5n, text: "7" }), `{"seed":${seed},"other":-5,"text":"7"}`);
  assert.equal(toJson([new Float32Array([1, 2])]), '["AACAPwAAAEA="]');
  assert.equal(encodeFloats([1, 2]), "AACAPwAAAEA=");
  assert.throws(() => toJson({ features: [1, NaN] }), /finite; got NaN/);
  assert.throws(() => encodeFloats([1e39]), /fit float32; got 1e\+39 at 0/);
  const client = new Client({ url: "http://127.0.0.1:1" });
  const items = [{ id: "a", features: [Infinity] }];
  await assert.rejects(client.rank({ model: "m", query_id: "q", items }), RangeError);
});
