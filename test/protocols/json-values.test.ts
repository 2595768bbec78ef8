// Protocols share their functions: none has its own copy of a function that reads JSON values.
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const ROOT = new URL("../../src/protocols/", import.meta.url).pathname;
const OWN_READER =
  /^(?:export )?(?:const|function) (?:isObject|asObject|asList|asObjects|asNumber|asBoolean|parseObject)\b.*\bunknown\b/m;

it("read JSON values with the functions that all protocols share", () => {
  const files = readdirSync(ROOT, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && file !== "json-values.ts",
  );
  expect(files.filter((file) => OWN_READER.test(readFileSync(ROOT + file, "utf8")))).toEqual([]);
});
