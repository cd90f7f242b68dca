export { Client, type Click, type Combined, type Item, type RankOptions } from "./client.js";
export { RankstreamError, Refused, Unavailable } from "./errors.js";
export { encodeFloats, toJson } from "./json.js";
export type { CallOptions, TransportOptions } from "./transport.js";
export * from "./types.js";
