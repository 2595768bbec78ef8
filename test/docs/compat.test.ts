// Plugins as they were written for earlier versions: each goes on compiling (`tsc -p .`), loading and conforming, and none is edited so that it does.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Definition } from "tollgate/plugin";
import {
  conformanceChecks,
  storeChecks,
  createStoreFactory,
  type ConformanceOptions,
} from "tollgate/testing";
import { validateDefinition } from "../../src/loader/validate-definition.ts";

const museum = join(import.meta.dirname, "../museum");

/** How each was mounted in its day. */
const GIVEN: Readonly<Record<string, ConformanceOptions>> = {
  acme: { credential: { api_key: "canary-acme-7f3a" } },
  "acme-cloud": {
    credential: { client_id: "house", client_secret: "canary-cloud-9d2e" },
    fetch: async () => Response.json({ token: "t0" }),
  },
  guard: { with: { words: ["tulip"] } },
};

describe.each(readdirSync(museum))("of %s", (version) => {
  const files = readdirSync(join(museum, version)).filter((file) => file !== "sums.txt");

  it("nothing has been changed since", () => {
    const sums = files.map((file) => {
      const text = readFileSync(join(museum, version, file));
      return `${createHash("sha256").update(text).digest("hex")}  ${file}\n`;
    });
    const place = join(museum, version, "sums.txt");
    // Once, when a version is put here.
    if (process.env["NEW_IN_MUSEUM"] === version) writeFileSync(place, sums.join(""));
    expect(sums.join("")).toBe(readFileSync(place, "utf8"));
  });

  describe.each(files.filter((file) => file.endsWith(".ts") && !file.endsWith("-protocol.ts")))(
    "%s",
    async (file) => {
      const name = file.replace(/\.ts$/, "");
      const module = (await import(join(museum, version, file))) as { default: Definition };
      const { default: definition } = module;

      it("is mounted", () =>
        expect(validateDefinition(module, definition["~tollgate"], file)).toEqual({ definition }));
      for (const { name: law, run } of conformanceChecks(definition, GIVEN[name])) it(law, run);
      if (definition["~tollgate"] === "store")
        for (const { name: law, run } of storeChecks(createStoreFactory(definition))) it(law, run);
    },
  );
});
