// Built-in data policies: each is valid by the schema, none is better than its evidence, and none
// lasts forever.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { builtin } from "../../../plugins/index.ts";
import { POLICIES, withPolicy } from "../../../plugins/providers/policy.ts";
import { effectivePolicy, satisfies } from "../../../src/catalog/data-policy.ts";
import type { DataPolicy, PolicyException } from "../../../src/model/facts.ts";

const root = new URL("../../..", import.meta.url).pathname;
const folder = join(root, "plugins/providers/policy");
const shipped = readdirSync(folder).map((file) => {
  const name = file.replace(/\.json$/, "");
  const policy = JSON.parse(readFileSync(join(folder, file), "utf8")) as {
    dataPolicy: DataPolicy;
    exceptions?: PolicyException[];
  };
  return { name, policy };
});
const schema = JSON.parse(readFileSync(join(root, "schemas/policy.schema.json"), "utf8")) as object;
const valid = new Ajv({ strict: true, strictRequired: false, strictTypes: false }).compile(schema);
/** The date of their last review, because tests must not fail as time passes. */
const NOW = Date.parse("2026-11-21");

/**
 * Providers with zero retention of a plain request without a declaration. An author who adds a name
 * here has read the evidence.
 */
const ZERO = ["deepinfra", "fireworks", "openrouter", "vercel"];

const bare = (name: string, more: object = {}) =>
  effectivePolicy({
    provider: shipped.find((s) => s.name === name)!.policy.dataPolicy,
    protocol: "chat-completions",
    trusted: true,
    now: NOW,
    ...more,
  });

describe("built-in data policies", () => {
  it("exist for every provider with an external backend, and all are listed", () => {
    const remote = Object.keys(builtin.provider).filter(
      (name) => name !== "demo" && !name.endsWith("-compatible"),
    );
    expect(shipped.map(({ name }) => name).toSorted()).toEqual(remote.toSorted());
    expect(Object.keys(POLICIES).toSorted()).toEqual(remote.toSorted());
  });

  it.each(shipped)("$name is valid by the schema", ({ policy }) => {
    expect(valid(policy), JSON.stringify(valid.errors)).toBe(true);
  });

  it("the schema rejects zero without a complete source, and unknown values", () => {
    const zero = {
      retention: { kind: "zero" },
      trains: "no",
      requires: "none",
      verifiedAt: "2026-11-20",
      expires: "2027-05-20",
    };
    const data = (more: object) => valid({ dataPolicy: { ...zero, ...more } });
    expect(data({ evidence: ["https://example.com/policy"] })).toBe(true);
    expect(data({})).toBe(false);
    expect(data({ evidence: ["https://example.com"] })).toBe(false);
    expect(data({ evidence: ["example.com/policy"] })).toBe(false);
    expect(data({ evidence: ["https://example.com/policy"], trains: "maybe" })).toBe(false);
    expect(data({ retention: { kind: "days", days: 30 } })).toBe(true);
    expect(data({ retention: { kind: "days", days: 30 }, zeroWhen: "control" })).toBe(false);
    expect(data({ retention: { kind: "days", days: 30 }, expires: "soon" })).toBe(false);
    expect(
      valid({
        dataPolicy: { ...zero, retention: { kind: "unknown" } },
        exceptions: [{ dataPolicy: {} }],
      }),
    ).toBe(false);
  });

  it("only providers with evidence qualify without a declaration", () => {
    expect(
      shipped.filter(({ name }) => satisfies("required", bare(name))).map(({ name }) => name),
    ).toEqual(ZERO);
  });

  it.each(shipped)("$name expires, and is then unknown", ({ name, policy }) => {
    expect(policy.dataPolicy.verifiedAt! < policy.dataPolicy.expires!).toBe(true);
    const months =
      Date.parse(policy.dataPolicy.expires!) - Date.parse(policy.dataPolicy.verifiedAt!);
    expect(months).toBeLessThanOrEqual(184 * 86_400_000);
    const late = bare(name, { now: Date.parse(policy.dataPolicy.expires!) + 1 });
    expect(late.retention.kind).toBe("unknown");
    expect(satisfies("required", late)).toBe(false);
  });

  it("a declaration suffices, unless zero retention is unavailable", () => {
    const without = shipped
      .filter(({ name }) => !satisfies("strict", bare(name, { credential: { declared: true } })))
      .map(({ name }) => name);
    expect(without).toEqual(["deepseek"]);
  });

  it("a mounted definition includes its exceptions", async () => {
    const load = builtin.provider.anthropic as () => Promise<{ default: any }>;
    const { default: anthropic } = await load();
    expect(anthropic.dataPolicy).toEqual(
      shipped.find((s) => s.name === "anthropic")!.policy.dataPolicy,
    );
    expect(anthropic.dataPolicyExceptions[0].model).toBe("claude-fable-5*");
    expect(await withPolicy("somebody", { name: "somebody" })).toEqual({ name: "somebody" });
  });
});
