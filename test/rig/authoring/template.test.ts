// The short form of the rig: two kinds, from `tollgate new` to an operator's response.
// `npm run rig template` runs all of them.
import { expect, it } from "vitest";
import { rig } from "./template.ts";

it.each(["native", "guard"])(
  "a plugin like %s is created, tested, packed, and mounted, and responds",
  async (only) => {
    const lines: string[] = [];
    const { wrong, counts } = await rig.run({ only, seconds: "600" }, (line) => lines.push(line));
    expect(wrong, lines.join("\n")).toEqual([]);
    expect(counts["kinds"]).toBe(1);
  },
  600_000,
);
