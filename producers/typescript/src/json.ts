import { Buffer } from "node:buffer";
import { randomUUID } from "node:crypto";

/**
 * JSON in which a bigint is a number, and a typed array is base64 of little-endian
 * float32. Numbers that JSON cannot hold are refused; it would make null of them.
 */
export function toJson(value: unknown): string {
  const mark = randomUUID();
  let hasBig = false;
  const text = JSON.stringify(value, (key, each: unknown) => {
    if (typeof each === "bigint") {
      hasBig = true;
      return `${mark}${each}`;
    }
    if (typeof each === "number" && !Number.isFinite(each)) {
      throw new RangeError(`numbers must be finite; got ${each} in ${key || "a value"}`);
    }
    if (each instanceof Float32Array || each instanceof Float64Array) {
      return encodeFloats(each);
    }
    return each;
  });
  return hasBig ? text.replace(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1") : text;
}

/** Base64 of little-endian float32, as events hold vectors and matrices. */
export function encodeFloats(values: ArrayLike<number>): string {
  const view = new DataView(new ArrayBuffer(4 * values.length));
  for (let i = 0; i < values.length; i++) {
    const single = Math.fround(values[i] as number);
    if (!Number.isFinite(single)) {
      throw new RangeError(`numbers must fit float32; got ${values[i]} at ${i}`);
    }
    view.setFloat32(4 * i, single, true);
  }
  return Buffer.from(view.buffer, 0, view.byteLength).toString("base64");
}
