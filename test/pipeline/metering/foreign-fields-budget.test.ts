// The cost tripwire: every foreign field, in every chat body, on every path. The reservation of a
// hard budget is never below the bill of an upstream that interprets everything as generously as
// possible.
import { expect, it } from "vitest";
import type { Reserve } from "tollgate/plugin";
import { BASES, CHAT_FACTS, CHATS, TARGETS, worst } from "../../rig/money/reservations.ts";
import { DOCUMENTED, FOREIGN } from "../privacy/foreign-fields.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { everyNth } from "../../kit/law-effort.ts";

const limit = { scope: "key", unit: "nano_usd", max: 10n ** 18n, per: "total" } as const;
const hooks = [{ charge: () => ({ hold: "hard" as const, limits: [limit] }) }];
const FIELDS = [...FOREIGN.map(({ fields }) => fields), ...DOCUMENTED];
const ROADS = Object.keys(CHATS).flatMap((from, i) =>
  Object.keys(TARGETS).map((into, j) => [from, into, i + j] as const),
);

it.each(ROADS)(
  "from %s to %s, no field makes a bill higher than its reservation",
  async (from, into, column) => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(400, { "content-type": "application/json" });
      res.end(JSON.stringify({ error: { message: "no", type: "invalid_request_error" } }));
    });
    await using s = await startTestServices({
      frontend: CHATS[from]!,
      providers: {
        p: {
          endpoints: [{ protocol: TARGETS[into]!, base: up.base, auth: "none" }],
          facts: CHAT_FACTS as never,
        },
      },
      hooks,
    });
    const wrong: string[] = [];
    let left = 0;
    for (const fields of everyNth(3, FIELDS, column)) {
      up.asked.length = 0;
      s.journal.length = 0;
      await (await s.ask({ ...BASES[from]!("Hi"), ...fields, model: "p/m" })).text();
      if (up.asked.length === 0) continue;
      left++;
      const bill = up.asked.reduce((sum, { body }) => sum + worst(body), 0n);
      const { claims, holdNano } = s.journal.find((c) => c.do === "reserve") as Reserve;
      if (claims[0]!.take < bill || holdNano! < bill)
        wrong.push(`${JSON.stringify(fields)}: held ${claims[0]!.take}, billed ${bill}`);
    }
    expect(wrong).toEqual([]);
    expect(left).toBeGreaterThan(20);
  },
);
