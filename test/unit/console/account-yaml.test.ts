// An account that the console writes as lines of gateway.yaml is parsed to the same account,
// whatever its names are.
import fc from "fast-check";
import { parse } from "yaml";
import { expect, it } from "vitest";
import { accountDiff, accountYaml } from "../../../plugins/observers/console/web/account-text.ts";
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { LIMIT_SPANS, LIMIT_UNITS } from "../../../src/plugin/store/limit-units.ts";
import { trialCount } from "../../kit/law-effort.ts";

const text = fc.string({ minLength: 1, maxLength: 12 }).filter((each) => each.trim() !== "");
const id = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,8}$/);
const limit = fc
  .record({
    unit: fc.constantFrom(...LIMIT_UNITS),
    max: fc.integer({ min: 0, max: 900_000_000_000 }),
    per: fc.constantFrom(...LIMIT_SPANS),
  })
  .map(formatLimit);
const account = fc.record(
  {
    id,
    name: text,
    parent: id,
    limits: fc.array(limit, { minLength: 1, maxLength: 3 }),
    models: fc.array(text, { minLength: 1, maxLength: 3 }),
    frontends: fc.array(text, { minLength: 1, maxLength: 2 }),
    privacy: fc.constantFrom("off", "required", "strict"),
    labels: fc.dictionary(
      text.filter((each) => each !== "__proto__"),
      text,
      { minKeys: 1, maxKeys: 2 },
    ),
    discloseLimits: fc.constantFrom("full", "hidden"),
    defaults: fc.record({ limits: fc.array(limit, { minLength: 1, maxLength: 2 }) }),
  },
  { requiredKeys: ["id"] },
);

it("is parsed to the same account", () => {
  fc.assert(
    fc.property(account, (of) => {
      const read = parse(["accounts:", ...accountYaml(of as never)].join("\n")) as any;
      const { id: own, discloseLimits, defaults, ...rest } = of;
      const config = {
        ...rest,
        ...(discloseLimits && { disclose_limits: discloseLimits }),
        ...(defaults && { key_defaults: defaults }),
      };
      expect(read).toEqual({ accounts: { [own]: config } });
    }),
    { numRuns: trialCount(400) },
  );
});

it("a change shows removed and added lines, and keeps the others", () => {
  fc.assert(
    fc.property(account, account, (one, other) => {
      const [before, after] = [one as never, { ...other, id: one.id } as never];
      const lines = accountDiff(before, after).slice(1);
      const side = (sign: string) =>
        lines.filter((line) => line[0] === sign || line[0] === " ").map((line) => line.slice(2));
      expect(side("-")).toEqual(accountYaml(before));
      expect(side("+")).toEqual(accountYaml(after));
    }),
    { numRuns: trialCount(400) },
  );
});
