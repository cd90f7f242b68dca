// All that the client needs of Node beside what browsers have too. It is not part of
// the package, so it is in nobody's way who has @types/node.
declare module "node:crypto" {
  export function randomUUID(): string;
}

declare module "node:buffer" {
  export const Buffer: {
    from(bytes: ArrayBufferLike, offset: number, length: number): {
      toString(encoding: "base64"): string;
    };
  };
}
