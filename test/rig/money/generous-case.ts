// One path through a gateway with a hard budget to an honest provider that interprets generously:
// its bill compared with the reservation.
import type { Reserve } from "tollgate/plugin";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { OPERATIONS, request } from "./generous-operations.ts";
import { createChance } from "../rig.ts";

const limit = { scope: "key", unit: "nano_usd", max: 10n ** 18n, per: "total" } as const;
const hooks = [{ charge: () => ({ hold: "hard" as const, limits: [limit] }) }];

export const ROADS = Object.entries(OPERATIONS).flatMap(([name, { from, into }]) =>
  Object.keys(from).flatMap((one) => Object.keys(into).map((other) => [name, one, other] as const)),
);

export interface Road extends AsyncDisposable {
  /** Requests that were sent, and those that reached the provider. */
  readonly counts: { asked: number; left: number };
  /** Violations of one request: none if it was reserved or rejected. */
  try(seed: number): Promise<string | undefined>;
}

export async function road([name, from, into]: (typeof ROADS)[number]): Promise<Road> {
  const operation = OPERATIONS[name]!;
  const up = await startBackend((_req, res) => {
    res.writeHead(400, { "content-type": "application/json" });
    res.end(JSON.stringify({ error: { message: "no", type: "invalid_request_error" } }));
  });
  const protocol = operation.into[into]!;
  const models = [...operation.facts.keys()];
  const s = await startTestServices({
    frontend: operation.from[from]!,
    providers: {
      p: {
        endpoints: [{ protocol, base: up.base, auth: "none" }],
        listModels: async () =>
          models.map((model) => ({ model, operation: protocol.operationSpec.name })),
        facts: operation.facts as never,
      },
    },
    hooks,
  });
  const counts = { asked: 0, left: 0 };
  return {
    counts,
    async try(seed) {
      const of = createChance(seed);
      const model = of.one(models.filter((one) => one !== "dear"));
      up.asked.length = 0;
      s.journal.length = 0;
      const body = { ...request(operation, from, of), model: `p/${model}` };
      const answer = await s.ask(body);
      const told = await answer.text();
      counts.asked++;
      if (answer.status >= 500) return `${answer.status}: ${told}`;
      if (up.asked.length === 0) return undefined;
      counts.left++;
      const bill = up.asked.reduce(
        (sum, one) => sum + operation.bill(JSON.parse(one.body), into, model),
        0n,
      );
      const { claims, holdNano } = s.journal.find((c) => c.do === "reserve") as Reserve;
      if (claims[0]!.take >= bill && holdNano! >= bill) return undefined;
      return `${name}, ${from} to ${into}: held ${holdNano}, billed ${bill}: ${up.asked[0]!.body.slice(0, 2_000)}`;
    },
    async [Symbol.asyncDispose]() {
      await s[Symbol.asyncDispose]();
      await up[Symbol.asyncDispose]();
    },
  };
}
