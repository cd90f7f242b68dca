// Compiles the client into dist/, and checks that its types are those of the schemas.
//
// The compiler is that of node_modules, else of the path, else npm installs the one of
// the lock file.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const LEAST = 18;

function onPath(name) {
  const places = (process.env.PATH ?? "").split(delimiter).map((each) => join(each, name));
  return places.find(existsSync);
}

function compiler() {
  const own = join(here, "node_modules", ".bin", "tsc");
  if (existsSync(own)) return own;
  const found = onPath("tsc");
  if (found) return found;
  const npm = onPath("npm");
  if (!npm) {
    throw new Error("tsc or npm must be on the path; neither is: install one of them");
  }
  run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund");
  return own;
}

function run(program, ...words) {
  execFileSync(program, words, { cwd: here, stdio: ["ignore", "inherit", "inherit"] });
}

const version = Number(process.versions.node.split(".")[0]);
try {
  if (version < LEAST) {
    throw new Error(`Node must be ${LEAST} or later; this is ${process.versions.node}`);
  }
  run(process.execPath, "generate.mjs", "--check");
  const tsc = compiler();
  run(tsc);
  run(tsc, "-p", "test");
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
