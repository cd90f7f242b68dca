import { Client, RankstreamError } from "rankstream-client";

const rankstream = new Client({ url: "http://127.0.0.1:8088", timeoutMs: 500 });

/** What a page shows, and what its clicks must name. */
export interface Page {
  items: string[];
  list?: { impression_id: string; query_id: string };
}

type Search = (query: string) => Promise<string[]>;

/** A page of the experiment `boost`, or the old one where it is not to be had. */
export async function page(
  query: string,
  session: string,
  rankers: { old: Search; new: Search },
): Promise<Page> {
  const [older, newer] = await Promise.all([rankers.old(query), rankers.new(query)]);
  try {
    const drawn = await rankstream.combine({
      experiment: "boost",
      rankings: { old: older, new: newer },
      query_id: query,
      session,
    });
    if (!drawn.takes_part) return { items: older };
    const { impression_id, query_id, ranking } = drawn;
    return { items: ranking, list: { impression_id, query_id } };
  } catch (error) {
    // Show nothing that was not logged: an experiment may miss lists, a shop may not.
    if (!(error instanceof RankstreamError)) throw error;
    console.warn(error.message);
    return { items: older };
  }
}

/** Somebody clicked on an item of a page. */
export async function clicked(page: Page, item_id: string): Promise<void> {
  if (!page.list) return;
  const position = page.items.indexOf(item_id) + 1;
  await rankstream.click({ ...page.list, item_id, position }, { timeoutMs: 30_000 });
}
