// An author's first hour, as in `npm run rig plugin-author`: from `tollgate new` to usage in the
// ledger of an operator who locked it.
import { expect, it } from "vitest";
import { rig } from "./plugin-author.ts";

it("a provider is created, edited, tested, packed, locked, and mounted; it responds and is billed", async () => {
  const lines: string[] = [];
  const { wrong } = await rig.run({}, (line) => lines.push(line));
  expect(wrong, lines.join("\n")).toEqual([]);
  expect(lines.at(-1)).toContain("its usage is in the ledger");
}, 600_000);
