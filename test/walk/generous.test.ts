// The law of hard budgets: an honest provider that reads a money field as generously as any backend does never bills more than was
// held. For every operation and protocol: names, places and forms of such fields.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Reserve } from "tollgate/plugin";
import { OPERATIONS, request } from "../rig/generous-operations.ts";
import { backend, scene } from "../kit/scene.ts";
import { chance } from "../rig/rig.ts";

const limit = { scope: "key", unit: "nano_usd", max: 10n ** 18n, per: "total" } as const;
const hooks = [{ charge: () => ({ hold: "hard" as const, limits: [limit] }) }];

const ROADS = Object.entries(OPERATIONS).flatMap(([name, { from, into }]) =>
  Object.keys(from).flatMap((one) => Object.keys(into).map((other) => [name, one, other] as const)),
);

describe("what a hard budget holds", () => {
  it.each(ROADS)("%s, from %s to %s: no spelling bills more", async (name, from, into) => {
    const operation = OPERATIONS[name]!;
    await using up = await backend((_req, res) => {
      res.writeHead(400, { "content-type": "application/json" });
      res.end(JSON.stringify({ error: { message: "no", type: "invalid_request_error" } }));
    });
    const { kind } = operation.into[into]!.work;
    const models = [...operation.facts.keys()];
    await using s = await scene({
      frontend: operation.from[from]!,
      providers: {
        p: {
          endpoints: [{ protocol: operation.into[into]!, base: up.base, auth: "none" }],
          models: async () => models.map((model) => ({ model, kind })),
          facts: operation.facts as never,
        },
      },
      hooks,
    });
    let [asked, left] = [0, 0];
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const of = chance(seed);
        const model = of.one(models.filter((one) => one !== "dear"));
        up.asked.length = 0;
        s.journal.length = 0;
        const body = { ...request(operation, from, of), model: `p/${model}` };
        const answer = await s.ask(body);
        const told = await answer.text();
        asked++;
        expect(answer.status, told).toBeLessThan(500);
        if (up.asked.length === 0) return;
        left++;
        const sent = up.asked.map((one) => JSON.parse(one.body));
        const bill = sent.reduce((sum, one) => sum + operation.bill(one, into, model), 0n);
        const { claims, holdNano } = s.journal.find((c) => c.do === "reserve") as Reserve;
        const what = `held ${holdNano}, billed ${bill}: ${up.asked[0]!.body.slice(0, 2_000)}`;
        expect(claims[0]!.take >= bill && holdNano! >= bill, what).toBe(true);
      }),
      { numRuns: 25 },
    );
    // The law is about requests that leave.
    expect(left, `of ${asked}`).toBeGreaterThan(3);
  });
});
