import { describe, expect, it } from "vitest";
import { canary, spellings } from "./canary.ts";

describe("the canary", () => {
  it("is found in every encoding, anywhere in a text", () => {
    const word = "cänary/prompt+7?worth=keeping";
    for (let before = 0; before < 4; before++)
      for (let after = 0; after < 4; after++) {
        const text = "x".repeat(before) + word + "y".repeat(after);
        for (const said of [
          text,
          JSON.stringify(text),
          encodeURIComponent(text),
          Buffer.from(text).toString("base64"),
          Buffer.from(text).toString("base64url"),
          Buffer.from(text).toString("hex"),
        ])
          expect(
            spellings(word).some((one) => said.includes(one)),
            said,
          ).toBe(true);
      }
  });

  it("no prompt, response, or key is left anywhere", async () => {
    const { wrong, counts } = await canary({ seed: 7, plant: "", say: () => {} });
    expect(wrong).toEqual([]);
    expect(counts["calls"]).toBeGreaterThan(100);
    expect(counts["sinks"]).toBeGreaterThan(15);
  }, 400_000);

  it("a middleware that logs content is found", async () => {
    const { wrong } = await canary({ seed: 7, plant: "leak", say: () => {} });
    expect(wrong.join("\n")).toContain("what the daemon wrote: prompt");
  }, 400_000);
});
