// One form of limits everywhere: the text that the command line accepts.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  LIMIT_SCHEMA,
  formatLimit,
  parseLimit,
  type Definition,
  type Limit,
} from "tollgate/plugin";
import { builtin } from "../../plugins/index.ts";
import type { Schema } from "../../src/config/schema-dialect.ts";
import { EDITOR_CONFIG_SCHEMA } from "../../src/config/schema/config-schema.ts";
import { validateValue } from "../../src/config/schema/validate-value.ts";
import { COMMAND_SPECS } from "../../src/admin/schema/command-specs.ts";
import { LIMIT_SPANS, LIMIT_UNITS } from "../../src/plugin/store/limit-units.ts";
import { trialCount } from "../kit/law-effort.ts";

const loaded = (kinds: readonly object[]): Promise<Definition[]> =>
  Promise.all(
    kinds
      .flatMap((kind) => Object.values(kind))
      .map(async (load) => (await (load as () => Promise<{ default: Definition }>)()).default),
  );
const plugins = await loaded(Object.values(builtin));
const SCHEMAS: readonly (readonly [name: string, schema: unknown])[] = [
  ["gateway.yaml", EDITOR_CONFIG_SCHEMA],
  ...plugins.map((each) => [`plugin ${each.name}`, "options" in each ? each.options : {}] as const),
  ...Object.entries(COMMAND_SPECS).map(([name, { input }]) => [name, input] as const),
];

/** Each object in a schema, with its path. */
function* nodes(of: unknown, path: string): Generator<readonly [string, Record<string, unknown>]> {
  if (typeof of !== "object" || of === null) return;
  yield [path, of as Record<string, unknown>];
  for (const [name, each] of Object.entries(of)) yield* nodes(each, `${path}/${name}`);
}
const ALL = SCHEMAS.flatMap(([name, schema]) => [...nodes(schema, name)]);

it("each list of limits in the config, in options, and in commands uses one schema", () => {
  const lists = ALL.filter(
    ([path, node]) =>
      path.endsWith("/properties/limits") && [node["type"]].flat().includes("array"),
  );
  expect(lists.length).toBe(17);
  for (const [path, node] of lists) expect([path, node["items"]]).toEqual([path, LIMIT_SCHEMA]);
  const places = lists.map(([path]) => path.replace(/\/.*/, ""));
  expect(new Set(places)).toEqual(
    new Set([
      "gateway.yaml",
      "plugin auth",
      "plugin jwt",
      "plugin client-certificates",
      "plugin limits",
      "plugin claude-gateway",
      "keys.create",
      "keys.update",
      "keys.import",
      "accounts.create",
      "accounts.update",
    ]),
  );
});

it("no schema takes a limit in another form", () => {
  const mappings = ALL.filter(([, { properties: p }]) =>
    ["unit", "max", "per"].every((name) => Object.hasOwn((p ?? {}) as object, name)),
  );
  expect(mappings.map(([path]) => path)).toEqual([]);
  const alike = ALL.filter(([, { pattern }]) => String(pattern).includes("usd="));
  // A description and the name in a command line belong to the place.
  for (const [path, node] of alike)
    expect([path, node]).toEqual([
      path,
      {
        ...LIMIT_SCHEMA,
        description: node["description"],
        ...(node["x-cli"] ? { "x-cli": node["x-cli"] } : {}),
      },
    ]);
});

it("no option of a middleware is a limit with a name of its own, such as rpm", async () => {
  const names = [...LIMIT_UNITS, "usd", "budget", "max_budget", "rpm", "tpm", "rps", "rpd"];
  for (const each of await loaded([builtin.middleware]))
    for (const [path, { properties }] of nodes("options" in each ? each.options : {}, each.name))
      expect([path, names.filter((each) => Object.hasOwn(properties ?? {}, each))]).toEqual([
        path,
        [],
      ]);
});

const span = fc.constantFrom(...LIMIT_SPANS.filter((each) => each !== "open"));
const limit: fc.Arbitrary<Omit<Limit, "scope">> = fc.oneof(
  fc.record({
    unit: fc.constant("nano_usd" as const),
    max: fc.bigInt(0n, 10n ** 18n - 1n),
    per: span,
  }),
  fc.record({
    unit: fc.constantFrom(
      ...LIMIT_UNITS.filter((unit) => unit !== "nano_usd" && unit !== "concurrent"),
    ),
    max: fc.nat({ max: 10 ** 15 - 1 }),
    per: span,
  }),
  fc.record({
    unit: fc.constant("concurrent" as const),
    max: fc.nat({ max: 10 ** 15 - 1 }),
    per: fc.constant("open" as const),
  }),
);

const accepted = (text: unknown): boolean =>
  validateValue(
    LIMIT_SCHEMA as Schema,
    text as never,
    () => false,
    () => ({ text: "", mayShow: true }),
  ).errors.length === 0;

it("a limit is printed as the text that it is parsed from", () => {
  fc.assert(
    fc.property(limit, (each) => {
      const text = formatLimit(each);
      expect(parseLimit(text)).toEqual(each);
      expect(formatLimit(parseLimit(text)!)).toBe(text);
      expect(accepted(text)).toBe(true);
    }),
  );
});

it("the schema accepts exactly the texts that parse, and only strings", () => {
  const part = fc.constantFrom(
    ...LIMIT_UNITS,
    ...LIMIT_SPANS,
    ..."= / 0 1 12.50 0.1234567890 -1 1e3 usd year words 9999999999 9999999999999999".split(" "),
    " ",
    "\n",
    "",
  );
  const text = fc.oneof(
    fc.array(part, { maxLength: 6 }).map((parts) => parts.join("")),
    fc.tuple(part, part, part).map(([unit, amount, per]) => `${unit}=${amount}/${per}`),
    fc.tuple(part, part).map(([unit, amount]) => `${unit}=${amount}`),
  );
  fc.assert(
    fc.property(text, (each) => {
      expect(accepted(each)).toBe(parseLimit(each) !== undefined);
    }),
    { numRuns: trialCount(1_000) },
  );
  for (const other of [{ unit: "usd", max: 300, per: "month" }, 300, null, [], true])
    expect(accepted(other)).toBe(false);
});

it.each([
  "usd=5",
  "usd=1.0000000001/day",
  "usd=1e3/day",
  "usd=1000000000/day",
  "nano_usd=5/day",
  "requests=1.5/day",
  "requests=60",
  "requests=60/open",
  "concurrent=4/day",
  "concurrent=4/open",
  "x=1/day",
  "tokens=-1/day",
  "tokens=1/year",
  "tokens=1/day\n",
  " tokens=1/day",
  "",
])("%j is no limit", (text) => {
  expect([parseLimit(text), accepted(text)]).toEqual([undefined, false]);
});

it("an amount may have more digits than its printed form", () => {
  expect(formatLimit(parseLimit("usd=012.50/month")!)).toBe("usd=12.5/month");
});
