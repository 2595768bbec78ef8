// No test would find a mutant that changes nothing, and one that changes two places proves nothing
// about either.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { MUTANTS } from "./mutants.ts";

const root = join(import.meta.dirname, "../../../..");

it.each(Object.entries(MUTANTS))("%s: its line exists once", (_name, { in: file, line }) => {
  expect(readFileSync(join(root, file), "utf8").split(line)).toHaveLength(2);
});
