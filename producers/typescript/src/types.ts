// Written by generate.mjs from docs/contract; changes go there.

/** An input event: a ranker showed a list (topic `queries`). */
export interface QueryEvent {
  /** The number of this layout. */
  schema?: 1;
  /** Names the list; unique. */
  impression_id: string;
  /** The query; statistics are kept by its normalised form. */
  query_id: string;
  /** Milliseconds since 1970, in UTC. */
  at_ms: number;
  /** The model that ranked; empty for none. */
  model?: string;
  /** Version of the model. */
  version?: number | bigint;
  /** Changes with every deployment; without it the model's name. */
  intervention?: string | null;
  /** Of the draw. A seed of an experiment is larger than a double can hold: write it as an integer of 64 bits. */
  seed?: number | bigint;
  /** How the list was drawn. */
  policy?: "unknown" | "plackett-luce" | "deterministic" | "tail-shuffle" | "logged" | "multileave";
  /** Items in displayed order; all of them candidates. */
  shown: string[];
  /** All items that were ranked, at most `limits.documents`. */
  candidates?: string[] | null;
  /** A number for each candidate. */
  scores?: string | number[] | null;
  /** P(candidate at rank): candidates by ranks, row after row. */
  exposures?: string | number[] | null;
  /** A row for each shown item, normalised as it was scored. */
  features?: string | number[][] | null;
  /** The comparison that the list belongs to. */
  experiment?: Experiment | null;
  /** Each ranker's own list, best first. */
  rankings?: Record<string, string[]> | null;
  /** For each shown item the number of the ranker that it counts for, by sorted names, from 0; -1 for none. */
  assignments?: number[] | null;
  /** Base64 of little-endian uint16, shown items by rankers: where each ranker of a multileaved list has them, from 1. */
  ranks?: string | null;
  /** A row for each candidate; raw with features_hash. */
  candidate_features?: string | number[][] | null;
  /** What the impressions of a user share. */
  user?: string | null;
  /** What the impressions of a session share. */
  session?: string | null;
  /** Anything, at most 16 levels deep. */
  attributes?: Record<string, unknown> | null;
  /** Hash of the list of features, in hexadecimal. */
  features_hash?: string | null;
  /** Stage of the canary in force for the session, in both arms: INTERVENTION/STAGE, as the ranking has it. */
  canary?: string | null;
}

/** The comparison that an impression belongs to. */
export interface Experiment {
  /** Name of the experiment. */
  id: string;
  /** Rises with each change of its configuration. */
  epoch: number;
  /** How lists are drawn. */
  method: string;
}

/** An input event: a user acted on an item of a list (topic `clicks`). */
export interface ClickEvent {
  /** The number of this layout. */
  schema?: 1;
  /** Names the list; unique. */
  impression_id: string;
  /** Milliseconds since 1970, in UTC. */
  at_ms: number;
  /** The query of the list. May be absent only where the impression id carries its route. */
  query_id?: string | null;
  /** What was clicked. */
  item_id?: string | null;
  /** Its rank on the page, from 1. */
  position?: number | null;
  /** What the user did. */
  action?: string;
  /** Names the click: sent again, it is a duplicate. */
  event_id?: string | null;
}

/**
 * Everything about one epoch of an experiment.
 *
 * `method` drew the lists; `methods` also holds those that were scored beside it.
 * Intervals of a method hold together at 1 - `alpha`. Times are of events, in epoch
 * milliseconds, -1 without any.
 */
export interface Verdict {
  experiment: string;
  epoch: number;
  method: string;
  rankers: string[];
  alpha: number;
  correction: string;
  first_ms: number;
  last_ms: number;
  totals: Record<string, number>;
  questions: Record<string, string>;
  methods: Record<string, MethodVerdict>;
  clicks_per_list: RateDifference[];
  health: HealthCheck[];
}

/**
 * What one method says; rankers in the order of `Verdict.rankers`.
 *
 * `matrix`, [n_rankers, n_rankers], holds mean preferences of row over column.
 * `cycles` go by means, `decided_cycles` by intervals that exclude 0.
 */
export interface MethodVerdict {
  impressions: number;
  sessions: SessionCoverage;
  matrix: number[][];
  pairs: PairVerdict[];
  winner: string | null;
  copeland: number[];
  bradley_terry: number[];
  cycles: string[][];
  decided_cycles: string[][];
}

/**
 * Groups of sessions, of 100, that carry the impressions, and how many must.
 *
 * `why` says in words what is missing before a winner may be named; else it is empty.
 */
export interface SessionCoverage {
  effective_groups: number;
  needed: number;
  enough: boolean;
  why: string;
}

/**
 * Two rankers under one method; `Verdict.questions` says what intervals answer.
 *
 * `mean` is the preference for `a` over `b`, in units of the method; `log_e_a` and
 * `log_e_b` are natural logarithms of evidence that either is better. `preferred_a`,
 * `preferred_b` and `possible` count impressions: those that preferred one, and those
 * that could have.
 */
export interface PairVerdict {
  a: string;
  b: string;
  mean: number;
  to_come: [number | null, number | null];
  came: [number | null, number | null];
  fixed: [number | null, number | null];
  sessions: [number | null, number | null];
  log_e_a: number;
  log_e_b: number;
  preferred_a: number;
  preferred_b: number;
  possible: number;
}

/**
 * Clicks per list of two arms of an A/B comparison: `a` minus `b`.
 *
 * `lists` counts those of either arm; intervals are as in `PairVerdict`.
 */
export interface RateDifference {
  a: string;
  b: string;
  mean: number;
  to_come: [number | null, number | null];
  came: [number | null, number | null];
  fixed: [number | null, number | null];
  sessions: [number | null, number | null];
  lists: [number, number];
}

/**
 * A number that tells whether the comparison can be believed.
 *
 * `detail` is whatever helps to judge it: counts by reason, a number for each ranker,
 * or a sentence.
 */
export interface HealthCheck {
  name: string;
  value: number | null;
  state: "alarm" | "ok" | "warning";
  detail: unknown;
}

/**
 * A user acted on an item of a list; without `at_ms` it happened now.
 *
 * Without `event_id` a request that is repeated is another click.
 */
export interface ClickRequest {
  impression_id: string;
  query_id?: string | null;
  item_id?: string | null;
  position?: number | null;
  action?: string;
  event_id?: string | null;
  at_ms?: number | null;
}

/**
 * How many events Kafka has now, and how many documents became none.
 *
 * `dead_letters` are documents that were sent on as such, with `refused=dead-letter`.
 */
export interface EventsAnswer {
  queries: number;
  clicks: number;
  ignored?: number;
  dead_letters?: number;
}

/**
 * Rank these items with a model.
 *
 * `k` is the length of the list. `policy` is what the model's learner needs where it
 * is absent. With `exposures` the answer says how likely each item was at each rank.
 * Without `log` no event is sent, and the list counts nowhere.
 */
export interface RankRequest {
  query_id: string;
  impression_id?: string | null;
  at_ms?: number | null;
  user?: string | null;
  session?: string | null;
  attributes?: Record<string, unknown> | null;
  model: string;
  items: RankItem[];
  k?: number;
  policy?: "deterministic" | "plackett-luce" | "tail-shuffle" | null;
  exposures?: boolean;
  log?: boolean;
}

/**
 * A candidate: its id, and its features in the order of the model.
 *
 * `features` are numbers, or base64 of little-endian float32.
 */
export interface RankItem {
  id: string;
  features: number[] | string;
}

/**
 * A list: `ranking` holds ids in the order in which they are to be shown.
 *
 * `exposures` has a row for each item of the request, and in it P(item at rank) for
 * each rank of the list. `intervention` is what statistics keep the list under.
 * `canary` names the stage of the canary in force for the session, if any.
 */
export interface RankAnswer {
  impression_id: string;
  query_id: string;
  ranking: string[];
  model: string;
  version: number;
  intervention: string;
  policy: string;
  exposures?: number[][] | null;
  canary?: string | null;
}

/**
 * Combine the rankers' own lists into one, as an experiment has it.
 *
 * `rankings` has the ids of each ranker's list, best first. `unit` decides who takes
 * part: the session, else the user, where it is absent. With `candidates` the event
 * holds what the list's propensities follow from. Without `log` no event is sent.
 */
export interface CombineRequest {
  query_id: string;
  impression_id?: string | null;
  at_ms?: number | null;
  user?: string | null;
  session?: string | null;
  attributes?: Record<string, unknown> | null;
  experiment: string;
  rankings: Record<string, string[]>;
  unit?: string | null;
  candidates?: string[] | null;
  log?: boolean;
}

/**
 * The combined list, where the unit takes part; else `takes_part` is false.
 *
 * Who does not take part is shown what is shown without the experiment.
 */
export interface CombineAnswer {
  takes_part: boolean;
  impression_id?: string;
  query_id?: string;
  ranking?: string[];
  epoch?: number;
  method?: string;
}

/** Why a request is not answered with success (application/problem+json). */
export interface ProblemAnswer {
  title: string;
  status: number;
  code: string;
  detail: string;
  rejected?: Rejected[];
}

/** A document that cannot be taken: its place in the request, and why. */
export interface Rejected {
  index: number;
  code: string;
  reason: string;
}
