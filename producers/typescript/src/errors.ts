import type { Rejected } from "./types.js";

/** A call that did not succeed. */
export class RankstreamError extends Error {
  override readonly name: string = "RankstreamError";
}

/** The server refuses the request; the same request again is refused again. */
export class Refused extends RankstreamError {
  override readonly name = "Refused";

  constructor(
    readonly status: number,
    /** Short and stable, for programs. */
    readonly code: string,
    /** What must be so, what was got, and what to do. */
    readonly detail: string,
    /** Documents of `events` that cannot be taken. Then none was sent. */
    readonly rejected: readonly Rejected[] = [],
  ) {
    super(`${detail} (${code}, status ${status})`);
  }
}

/**
 * No answer that could be relied on came in time: whether the events were taken is not
 * known. `request` is what was sent, with all its ids: to send it again is safe.
 */
export class Unavailable extends RankstreamError {
  override readonly name = "Unavailable";

  constructor(
    reason: string,
    readonly request: unknown,
    readonly attempts: number,
  ) {
    super(`no answer after ${attempts} attempt${attempts === 1 ? "" : "s"}; ${reason}`);
  }
}
