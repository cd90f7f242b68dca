import { randomUUID } from "node:crypto";

import { toJson } from "./json.js";
import { Transport, type CallOptions, type TransportOptions } from "./transport.js";
import type {
  ClickEvent,
  ClickRequest,
  CombineAnswer,
  CombineRequest,
  EventsAnswer,
  QueryEvent,
  RankAnswer,
  RankItem,
  RankRequest,
} from "./types.js";

/** An item to rank; a typed array is sent as base64, which is smaller than numbers. */
export type Item = Omit<RankItem, "features"> & {
  features: RankItem["features"] | Float32Array | Float64Array;
};

/** Somebody acted on an item, named by its id or by its position from 1. */
export type Click = Omit<ClickRequest, "query_id" | "item_id" | "position"> & {
  /** The query of the list. */
  query_id: string;
} & ({ item_id: string; position?: number } | { item_id?: undefined; position: number });

const OF_A_CLICK = [
  "impression_id",
  "query_id",
  "item_id",
  "position",
  "action",
  "event_id",
  "at_ms",
] as const;

/** What `rank` takes. */
export type RankOptions = Omit<RankRequest, "items"> & { items: Item[] };

/**
 * What `combine` gives: the list to show, or that this unit takes no part. Who takes
 * none is shown what is shown without the experiment.
 */
export type Combined =
  | { takes_part: false }
  | ({ takes_part: true } & Required<Omit<CombineAnswer, "takes_part">>);

/**
 * A rankstream server, as a service uses it.
 *
 * Each call is tried again until it is answered or its time is up. Ids that are absent
 * are made here, once for all attempts, so nothing counts twice.
 */
export class Client {
  readonly #transport: Transport;

  constructor(options: TransportOptions) {
    this.#transport = new Transport(options);
  }

  /** Rank items with a model; answered once the list is logged. */
  rank(request: RankOptions, call?: CallOptions): Promise<RankAnswer> {
    const named = { ...request, impression_id: request.impression_id ?? randomUUID() };
    return this.#post("/v1/rank", named, call);
  }

  /** Combine rankers' lists as an experiment has it; answered once it is logged. */
  async combine(request: CombineRequest, call?: CallOptions): Promise<Combined> {
    const named = { ...request, impression_id: request.impression_id ?? randomUUID() };
    const answer = await this.#post<CombineAnswer>("/v1/combine", named, call);
    if (!answer.takes_part) return { takes_part: false };
    const absent = { impression_id: "", query_id: "", ranking: [], epoch: 0, method: "" };
    return { ...absent, ...answer, takes_part: true };
  }

  /** Somebody acted on an item of a list; without `at_ms` it happened now. */
  click(request: Click, call?: CallOptions): Promise<EventsAnswer> {
    // Only these: who spreads a whole list into a click means its ids.
    const given = OF_A_CLICK.filter((field) => request[field] !== undefined);
    const click = Object.fromEntries(given.map((field) => [field, request[field]]));
    return this.#post("/v1/click", named(click as unknown as ClickRequest), call);
  }

  /** Send events that a service made by itself: all are taken, or none. */
  events(
    events: readonly (QueryEvent | ClickEvent)[],
    call?: CallOptions,
  ): Promise<EventsAnswer> {
    const sent = events.map((event) => ("shown" in event ? event : named(event)));
    return this.#post("/v1/events", sent, call);
  }

  async #post<Answer>(
    path: string,
    request: unknown,
    call?: CallOptions,
  ): Promise<Answer> {
    return this.#transport.post(path, toJson(request), request, call);
  }
}

/** A click with a name and a time, so that it counts once however often it is sent. */
function named<Click extends ClickEvent | ClickRequest>(click: Click): Click {
  return {
    ...click,
    event_id: click.event_id ?? randomUUID(),
    at_ms: click.at_ms ?? Date.now(),
  };
}
