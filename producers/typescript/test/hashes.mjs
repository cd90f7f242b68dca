// Hashes and normal forms of the contract, written from docs/contract/README.md alone.

const MASK = (1n << 64n) - 1n;

const IV = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];

const SIGMA = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

const rotated = (word, by) => ((word >> by) | (word << (64n - by))) & MASK;

/** BLAKE2b (RFC 7693) of some bytes, without a key, as `size` bytes. */
export function blake2b(bytes, size) {
  const state = [...IV];
  state[0] ^= 0x01010000n ^ BigInt(size);
  const nBlocks = Math.max(1, Math.ceil(bytes.length / 128));
  for (let block = 0; block < nBlocks; block++) {
    const padded = new Uint8Array(128);
    padded.set(bytes.subarray(128 * block, 128 * (block + 1)));
    const view = new DataView(padded.buffer);
    const words = SIGMA[0].map((i) => view.getBigUint64(8 * i, true));
    const isLast = block === nBlocks - 1;
    compress(state, words, BigInt(isLast ? bytes.length : 128 * (block + 1)), isLast);
  }
  const out = new DataView(new ArrayBuffer(64));
  state.forEach((word, i) => out.setBigUint64(8 * i, word, true));
  return new Uint8Array(out.buffer, 0, size);
}

function compress(state, words, counted, isLast) {
  const v = [...state, ...IV];
  v[12] ^= counted;
  if (isLast) v[14] ^= MASK;
  const mix = (a, b, c, d, x, y) => {
    v[a] = (v[a] + v[b] + x) & MASK;
    v[d] = rotated(v[d] ^ v[a], 32n);
    v[c] = (v[c] + v[d]) & MASK;
    v[b] = rotated(v[b] ^ v[c], 24n);
    v[a] = (v[a] + v[b] + y) & MASK;
    v[d] = rotated(v[d] ^ v[a], 16n);
    v[c] = (v[c] + v[d]) & MASK;
    v[b] = rotated(v[b] ^ v[c], 63n);
  };
  for (let round = 0; round < 12; round++) {
    const order = SIGMA[round % 10];
    for (let i = 0; i < 8; i++) {
      const [x, y] = [words[order[2 * i]], words[order[2 * i + 1]]];
      const [b, c, d] = i < 4 ? [i, i, i] : [(i + 1) % 4, (i + 2) % 4, (i + 3) % 4];
      mix(i % 4, 4 + b, 8 + c, 12 + d, x, y);
    }
  }
  for (let i = 0; i < 8; i++) state[i] ^= v[i] ^ v[i + 8];
}

const utf8 = (text) => new TextEncoder().encode(text);
export const hex = (bytes) => Buffer.from(bytes).toString("hex");
export const hash = (text, size) => blake2b(utf8(text), size);

/** The first eight bytes of the hash of a text, as a number. */
export const hash64 = (text) => BigInt(`0x${hex(hash(text, 8))}`);

/** The identity of an event: the hash of its parts, each with its length in bytes. */
export function identity(...parts) {
  const named = parts.map((part) => `${utf8(part).length}:${part}`).join("");
  return hex(hash(named, 16));
}

/** CRC-32 as in zip and PNG. */
export function crc32(text) {
  let sum = 0xffffffff;
  for (const byte of utf8(text)) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return (sum ^ 0xffffffff) >>> 0;
}

const SPACES =
  /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;

/** Case folded, in NFC, runs of white space made one space, ends stripped. */
export function normalised(query) {
  const folded = [...query].map(folding).join("").normalize("NFC");
  return folded.split(SPACES).filter(Boolean).join(" ");
}

/** Full case folding of one character; JavaScript has none of its own. */
function folding(character) {
  const code = character.codePointAt(0);
  if (code === 0x131) return character;
  if (code >= 0x13a0 && code <= 0x13f5) return character;
  if ((code >= 0xab70 && code <= 0xabbf) || (code >= 0x13f8 && code <= 0x13fd)) {
    return character.toUpperCase();
  }
  let found = character;
  // Twice: a capital sharp s becomes a small one first. Each by itself: a sigma at the
  // end of a word is another one.
  for (let turn = 0; turn < 2; turn++) {
    found = [...found.toUpperCase()].map((each) => each.toLowerCase()).join("");
  }
  return found;
}
