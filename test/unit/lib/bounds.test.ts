// The list of bounds is complete: each has its message, and the configurable ones equal the schema.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { boundMessage, BOUNDS, type Bound, type BoundName } from "../../../src/lib/bounds.ts";
import { parseSize } from "../../../src/lib/time/units.ts";
import { ERRORS, getFault } from "../../../src/model/error.ts";
import { failBoundExceeded } from "../../../src/model/bound-exceeded.ts";

const ROOT = join(import.meta.dirname, "../../..");
const all = Object.entries(BOUNDS) as [BoundName, Bound][];
const schema = JSON.parse(readFileSync(join(ROOT, "schemas/gateway.schema.json"), "utf8")) as any;
const page = readFileSync(join(ROOT, "docs/guides/limits-and-overload.md"), "utf8");

describe.each(all)("%s", (name, { max, error, configKey }) => {
  it("fails with its own error, which states the limit", () => {
    expect(boundMessage(name, 12_345)).not.toContain("#");
    if (!error) return;
    let fault;
    try {
      failBoundExceeded(name, 12_345);
    } catch (thrown) {
      fault = getFault(thrown);
    }
    expect(fault).toMatchObject({ kind: error[0], code: error[1] });
    expect(Object.keys(ERRORS)).toContain(error[0]);
  });

  it("is in the schema and on the page about limits if it is configurable", () => {
    if (configKey === undefined) return;
    const at = configKey.split(".").reduce((node, part) => node.properties[part], schema);
    expect(typeof at.default === "number" ? at.default : parseSize(at.default)).toBe(max);
    expect(page).toContain(`${configKey.split(".").at(-1)}:`);
  });
});
