// Writes src/types.ts from docs/contract: the schemas of events, and of the API.
//
//   node generate.mjs          writes the file anew
//   node generate.mjs --check  exit status 1 where it is not what would be written

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const contract = new URL("../../docs/contract/", import.meta.url);
const target = new URL("src/types.ts", import.meta.url);

const SOURCES = ["query-event.schema", "click-event.schema", "verdict.schema", "openapi"];

/** Every definition by its name, of all files; those of events come first. */
function definitions() {
  const found = new Map();
  for (const source of SOURCES) {
    const file = JSON.parse(readFileSync(new URL(`${source}.json`, contract), "utf8"));
    for (const [name, schema] of Object.entries(file.$defs ?? file.components.schemas)) {
      if (!found.has(name)) found.set(name, schema);
    }
  }
  return found;
}

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  switch (schema.type) {
    case "integer":
      // A double holds whole numbers up to 2^53.
      return schema.maximum > Number.MAX_SAFE_INTEGER ? "number | bigint" : "number";
    case "number":
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "array":
      if (schema.prefixItems) return `[${schema.prefixItems.map(typeOf).join(", ")}]`;
      return schema.items ? `${grouped(typeOf(schema.items))}[]` : "unknown[]";
    case "object":
      return schema.additionalProperties
        ? `Record<string, ${typeOf(schema.additionalProperties)}>`
        : "Record<string, unknown>";
    default:
      return "unknown";
  }
}

function grouped(type) {
  return type.includes(" | ") ? `(${type})` : type;
}

function comment(text, indent) {
  const lines = text.trim().split("\n").map((line) => line.trim());
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  const body = lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n");
  return `${indent}/**\n${body}\n${indent} */\n`;
}

function declared(name, schema) {
  const required = new Set(schema.required ?? []);
  let text = schema.description ? comment(schema.description, "") : "";
  text += `export interface ${name} {\n`;
  for (const [field, shape] of Object.entries(schema.properties ?? {})) {
    if (shape.description) text += comment(shape.description, "  ");
    text += `  ${field}${required.has(field) ? "" : "?"}: ${typeOf(shape)};\n`;
  }
  return `${text}}\n`;
}

const written =
  "// Written by generate.mjs from docs/contract; changes go there.\n\n" +
  [...definitions()].map(([name, schema]) => declared(name, schema)).join("\n");

if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== written) {
    console.error(
      `${fileURLToPath(target)} must be what the schemas say; it is not: ` +
        "run `node producers/typescript/generate.mjs`",
    );
    process.exit(1);
  }
} else {
  writeFileSync(target, written);
}
