import { RankstreamError, Refused, Unavailable } from "./errors.js";
import type { ProblemAnswer } from "./types.js";

/** How calls are made. */
export interface TransportOptions {
  /** Of the server, such as `http://127.0.0.1:8088`; a path is kept. */
  url: string;
  /** The token, or what gives it: it is asked at each attempt, so tokens may change. */
  token?: string | (() => string | Promise<string>);
  /** For a whole call, with all attempts: 10 seconds unless given. */
  timeoutMs?: number;
  /** For one attempt: 5 seconds unless given. */
  attemptMs?: number;
  /** Another `fetch`, such as one with an agent of its own. */
  fetch?: typeof fetch;
}

/** What a single call may say. */
export interface CallOptions {
  /** Instead of the client's. */
  timeoutMs?: number;
  /** Ends the call; it then throws the signal's reason. */
  signal?: AbortSignal;
}

/** The server, or what stands before it, may take the same request later. */
const WORTH_ANOTHER = new Set([408, 425, 429, 500, 502, 503, 504]);

/** What a header can hold. */
const A_LINE = /^[\t\x20-\x7e\x80-\xff]+$/;

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/** Posts bodies until they are answered, refused, or the time is up. */
export class Transport {
  readonly #base: string;
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    const url = new URL(options.url);
    if (url.protocol !== "http:" && url.protocol !== "https:") {
      throw new TypeError(`url must be http: or https:; got ${options.url}`);
    }
    if (url.username || url.password) {
      throw new TypeError("url must hold no credentials; give the token as an option");
    }
    this.#base = url.href.replace(/\/$/, "");
    this.#options = options;
  }

  /**
   * The answer to a body. Each attempt sends the same bytes, so whatever it names by
   * an id counts once.
   */
  async post<Answer>(
    path: string,
    body: string,
    request: unknown,
    call: CallOptions = {},
  ): Promise<Answer> {
    const endsMs = Date.now() + (call.timeoutMs ?? this.#options.timeoutMs ?? 10_000);
    let attempts = 0;
    for (;;) {
      call.signal?.throwIfAborted();
      attempts += 1;
      const heard = await this.#attempt<Answer>(path, body, endsMs, call.signal);
      if ("answer" in heard) return heard.answer;
      const pauseMs = heard.retryMs ?? pauseBefore(attempts);
      if (Date.now() + pauseMs >= endsMs) {
        throw new Unavailable(heard.reason, request, attempts);
      }
      await paused(pauseMs, call.signal);
    }
  }

  async #attempt<Answer>(
    path: string,
    body: string,
    endsMs: number,
    signal?: AbortSignal,
  ): Promise<{ answer: Answer } | { reason: string; retryMs?: number }> {
    const ends = new AbortController();
    const mostMs = Math.max(1, endsMs - Date.now());
    const timer = setTimeout(
      () => ends.abort(),
      Math.min(this.#options.attemptMs ?? 5_000, mostMs),
    );
    const stop = () => ends.abort();
    signal?.addEventListener("abort", stop, { once: true });
    let response: Response;
    let text: string;
    try {
      response = await (this.#options.fetch ?? fetch)(this.#base + path, {
        method: "POST",
        headers: await Promise.race([this.#headers(), ended(ends.signal)]),
        body,
        redirect: "error",
        signal: ends.signal,
      });
      // The answer is whole, or it is none.
      text = await response.text();
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof RankstreamError) throw error;
      if (ends.signal.aborted) return { reason: "an attempt took too long" };
      return { reason: reasonOf(error) };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
    if (response.ok) {
      const answer = parsed<Answer>(text);
      return answer === undefined ? { reason: "the answer was no JSON" } : { answer };
    }
    return refusedOr(response, text);
  }

  async #headers(): Promise<Record<string, string>> {
    const { token } = this.#options;
    const named = typeof token === "function" ? await token() : token;
    if (named && !A_LINE.test(named)) {
      // What `fetch` would say of it repeats the token.
      throw new RankstreamError("token must be one line of Latin characters; it is not");
    }
    return {
      "content-type": "application/json",
      accept: "application/json",
      ...(named ? { authorization: `Bearer ${named}` } : {}),
    };
  }
}

/** Throws what is final; otherwise when to try again. */
function refusedOr(response: Response, text: string): { reason: string; retryMs?: number } {
  const problem = parsed<Partial<ProblemAnswer>>(text) ?? {};
  const detail = problem.detail ?? (text.slice(0, 200) || response.statusText);
  if (!WORTH_ANOTHER.has(response.status)) {
    throw new Refused(
      response.status,
      problem.code ?? "unknown",
      detail,
      problem.rejected ?? [],
    );
  }
  const reason = `the last answer was ${response.status}: ${detail}`;
  const retryMs = retryAfterMs(response.headers.get("retry-after"));
  return retryMs === undefined ? { reason } : { reason, retryMs };
}

/** Seconds, or a date; servers of others may say either. */
function retryAfterMs(said: string | null): number | undefined {
  if (said === null) return undefined;
  const asked = /^\d+$/.test(said) ? 1_000 * Number(said) : Date.parse(said) - Date.now();
  return Number.isNaN(asked) ? undefined : Math.max(0, asked) + spread(FIRST_PAUSE_MS);
}

function pauseBefore(attempts: number): number {
  const pauseMs = FIRST_PAUSE_MS * 2 ** (attempts - 1);
  return spread(Math.min(pauseMs, LONGEST_PAUSE_MS));
}

/** Half to all of it: many clients lose one server at once. */
function spread(pauseMs: number): number {
  return pauseMs * (0.5 + 0.5 * Math.random());
}

function paused(pauseMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, pauseMs);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Rejects when the signal ends what waits for it, such as a token that never comes. */
function ended(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

function parsed<Kind>(text: string): Kind | undefined {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null ? (found as Kind) : undefined;
  } catch {
    return undefined;
  }
}

/** `fetch` hides what went wrong in the cause. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? cause.message || String(cause) : String(cause);
}
