// Compiled, never run: what the types allow, and what they do not.

import { Client, type QueryEvent, type Verdict } from "../src/index.js";

const client = new Client({ url: "http://127.0.0.1:8088", token: async () => "t" });

export async function allowed(): Promise<string[]> {
  const ranked = await client.rank({
    model: "search",
    query_id: "red shoes",
    items: [
      { id: "a", features: [1, 2] },
      { id: "b", features: new Float32Array([1, 2]) },
      { id: "c", features: "AACAPwAAAEA=" },
    ],
    session: "s81",
  });
  const drawn = await client.combine(
    { experiment: "boost", rankings: { old: ["a"], new: ["b"] }, query_id: "q", unit: "u" },
    { timeoutMs: 500, signal: new AbortController().signal },
  );
  const { impression_id, query_id } = ranked;
  await client.click({ impression_id, query_id, position: 1 });
  await client.click({ impression_id, query_id, item_id: "a", action: "buy" });
  const event: QueryEvent = {
    impression_id,
    query_id,
    at_ms: Date.now(),
    shown: ["a"],
    seed: 2n ** 62n,
  };
  const { queries, clicks } = await client.events([event]);
  return drawn.takes_part && queries + clicks > 0 ? drawn.ranking : ranked.ranking;
}

export function winner(verdict: Verdict): string | null | undefined {
  return verdict.methods["team-draft"]?.winner;
}

export async function refused(): Promise<void> {
  const list = { impression_id: "i", query_id: "q" };
  // @ts-expect-error a click names an item or a position
  await client.click(list);
  // @ts-expect-error and the query of its list
  await client.click({ impression_id: "i", position: 1 });
  // @ts-expect-error a list has a time
  await client.events([{ ...list, shown: ["a"] }]);
  // @ts-expect-error there is no such policy
  await client.rank({ model: "m", query_id: "q", items: [], policy: "random" });
  const drawn = await client.combine({ experiment: "e", rankings: {}, query_id: "q" });
  // @ts-expect-error who takes no part has no list
  drawn.ranking;
}
