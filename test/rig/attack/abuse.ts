// Attempts of a client or a provider to make a call cost less than it is billed for. Each class has
// a generator, and the ledger's row is compared with the priced counts.
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "node:http";
import type { LedgerEntry, Json, JsonObject } from "tollgate/plugin";
import { parseKey } from "../../../src/lib/api-key.ts";
import { ordered, PRICED, type Order } from "./bills.ts";
import { EXTRAS, reported, type Wire } from "./reports.ts";
import type { Attack, Site } from "./target.ts";

/** Nano-dollars, as in the gateway.yaml of site.ts. */
const RATES = { input: 3_000n, output: 15_000n } as const;
const CONTEXT = 100_000;
const LONGEST = 4_096;

const WIRES: readonly Wire[] = ["chat", "messages", "responses", "gemini"];

interface Call {
  readonly wire: Wire;
  readonly stream: boolean;
  readonly order: Order;
  readonly fields?: JsonObject;
  /** Counts with a price. */
  readonly input: number;
  readonly output: number;
  /** Only counts with a price were reported. */
  readonly exact?: boolean;
}

const path: { readonly [wire in Wire]: string } = {
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
  gemini: "/v1/chat/completions",
};

const bodyOf = ({ wire, stream, order, fields = {} }: Call): JsonObject => {
  const words = ordered(order);
  const user = [{ role: "user", content: words }] as Json;
  return {
    model: `bills-${wire}/${PRICED}`,
    stream,
    ...(wire === "responses" ? { input: words, store: false } : { messages: user }),
    ...(wire === "responses" ? { max_output_tokens: LONGEST } : { max_tokens: LONGEST }),
    ...fields,
  };
};

/** Returns the settled rows of a key when there are enough. */
async function rowsOf(site: Site, key: string, count: number): Promise<readonly LedgerEntry[]> {
  let rows: readonly LedgerEntry[] = [];
  for (let i = 0; i < 100 && rows.length < count; i++) {
    const { items } = (await site.daemon.ask("ledger.entries", {
      key,
      limit: 1_000,
    })) as unknown as { items: readonly LedgerEntry[] };
    rows = items.filter(({ kind }) => kind === "settle");
    if (rows.length < count) await sleep(50);
  }
  return rows;
}

const owed = ({ input, output }: Pick<Call, "input" | "output">): bigint =>
  BigInt(input) * RATES.input + BigInt(output) * RATES.output;

interface Class {
  readonly name: string;
  generate(site: Site): Call;
}

const TIMES = 40;

function wireOf(site: Site, wires: readonly Wire[] = WIRES): Wire {
  return wires[site.chance.below(wires.length)]!;
}

function plain(site: Site, wires?: readonly Wire[]) {
  const { below } = site.chance;
  const wire = wireOf(site, wires);
  return { wire, stream: below(2) === 0, input: 1_000 + below(50_000), output: 1 + below(LONGEST) };
}

const CLASSES: readonly Class[] = [
  {
    name: "billing: reports of units without a price",
    generate(site) {
      const call = plain(site);
      const extras = EXTRAS[call.wire];
      const {
        usage = {},
        more,
        tools,
      } = extras[site.chance.below(extras.length)]!(1 + site.chance.below(6));
      // Gemini's prompt count includes cached tokens, so only the rest has the full price.
      const cached = Number(usage["cachedContentTokenCount"] ?? 0);
      const order = {
        usage: reported(call.wire, call.input, call.output, usage as JsonObject),
        ...(more && { more }),
        ...(tools && { tools }),
      };
      return { ...call, input: call.input - cached, order };
    },
  },
  {
    name: "billing: service tiers that the client chooses and the provider repeats",
    generate(site) {
      const call = plain(site, ["chat", "responses"]);
      const tier = ["flex", "scale", "priority", "batch", "warp", "toString"][
        site.chance.below(6)
      ]!;
      const order = {
        usage: reported(call.wire, call.input, call.output),
        more: { service_tier: tier },
      };
      return { ...call, order, fields: { service_tier: tier } };
    },
  },
  {
    name: "billing: a last report of zeros, or of less than before",
    generate(site) {
      const call = { ...plain(site, ["chat", "messages", "gemini"]), stream: true };
      return {
        ...call,
        order: {
          usage: reported(call.wire, call.input, call.output),
          shrinks: site.chance.often(0.5) ? 0 : site.chance(),
        },
      };
    },
  },
  {
    name: "billing: reports beyond context and cap",
    generate(site) {
      const call = plain(site);
      const input = site.chance.below(2) === 0 ? call.input : CONTEXT + 1 + site.chance.below(1e6);
      const output = input > CONTEXT ? call.output : LONGEST + 1 + site.chance.below(1e6);
      return {
        ...call,
        input,
        output,
        order: { usage: reported(call.wire, input, output) },
        exact: false,
      };
    },
  },
];

async function run(site: Site, { name, generate }: Class): Promise<readonly string[]> {
  const wrong: string[] = [];
  let paid = 0n;
  let due = 0n;
  for (let i = 0; i < TIMES; i++) {
    const call = generate(site);
    const key = await site.key(`abuse ${site.chance.below(1e9)} ${i}`);
    const { status } = await site.post(path[call.wire], JSON.stringify(bodyOf(call)), { key });
    const what = `${name}: ${JSON.stringify(bodyOf(call)).slice(0, 120)} ${JSON.stringify(call.order)}`;
    if (status !== 200) {
      wrong.push(`${what}: ${status}`);
      continue;
    }
    const [row] = await rowsOf(site, keyId(key), 1);
    const cost = BigInt(row?.costNano ?? 0);
    paid += cost;
    due += owed(call);
    if (cost < owed(call)) wrong.push(`${what}: billed ${cost} of ${owed(call)} (${row?.state})`);
    if (call.exact === false && row?.state !== "estimated") wrong.push(`${what}: is ${row?.state}`);
  }
  site.noted(`${name}: ${TIMES} calls, $${dollars(paid)} billed, $${dollars(due)} owed at least`);
  return wrong;
}

const dollars = (nano: bigint): string => (Number(nano) / 1e9).toFixed(2);
const keyId = (secret: string): string => parseKey(secret)!.id;

/** Settings that disable reasoning on some backends. This backend ignores them and reasons. */
const OFF: readonly JsonObject[] = [
  { reasoning_effort: "none" },
  { reasoning: { effort: "none" } },
  { thinking: { type: "disabled" } },
  { enable_thinking: false },
  { chat_template_kwargs: { enable_thinking: false } },
];

const hangups: Attack = {
  name: "billing: thinking switched off, and a hang-up",
  async run(site) {
    const wrong: string[] = [];
    let paid = 0n;
    for (const fields of OFF) {
      const key = await site.key(`off ${site.chance.below(1e9)}`);
      const order = { usage: reported("chat", 10, 10), hangs: true };
      const body = JSON.stringify(
        bodyOf({ wire: "chat", stream: true, order, fields, input: 10, output: 10 }),
      );
      await new Promise<void>((resolve) => {
        const asked = request(`${site.daemon.url}/v1/chat/completions`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${key}`,
            "content-type": "application/json",
            "content-length": Buffer.byteLength(body),
          },
        });
        asked.on("response", (answer) =>
          answer.once("data", () => asked.destroy()).on("error", () => {}),
        );
        asked.on("error", () => {}).on("close", () => resolve());
        asked.end(body);
      });
      const [row] = await rowsOf(site, keyId(key), 1);
      const cost = BigInt(row?.costNano ?? 0);
      paid += cost;
      // Half a second of reasoning, at 4,000 tokens per second.
      if (cost < 2_000n * RATES.output)
        wrong.push(`${JSON.stringify(fields)}: billed ${cost} (${row?.state})`);
    }
    site.noted(
      `billing: thinking switched off, and a hang-up: ${OFF.length} calls, $${dollars(paid)} billed`,
    );
    return wrong;
  },
};

const refusals: Attack = {
  name: "billing: tools and tiers without a price, on a budget",
  async run(site) {
    const wrong: string[] = [];
    const asks: readonly (readonly [Wire, JsonObject])[] = [
      ["chat", { web_search_options: {} }],
      ["chat", { plugins: [{ id: "web" }] }],
      ["chat", { tools: [{ type: `tool_${site.chance.below(1e6)}` }] }],
      ["messages", { tools: [{ type: "web_search_20250305", name: "web_search" }] }],
      ["messages", { tools: [{ type: "code_execution_20250825", name: "code_execution" }] }],
      ["responses", { tools: [{ type: "web_search" }] }],
      ["responses", { tools: [{ type: "image_generation" }] }],
      ["responses", { tools: [{ type: `tool_${site.chance.below(1e6)}` }] }],
      ...["flex", "scale", "priority", `tier_${site.chance.below(1e6)}`].map(
        (service_tier) => ["chat", { service_tier }] as const,
      ),
    ];
    const key = await site.key(`budget ${site.chance.below(1e9)}`, {
      limits: ["usd=1000/total"],
    });
    for (const [wire, fields] of asks) {
      const before = site.up.count;
      const order = { usage: reported(wire, 1, 1) };
      const body = JSON.stringify(
        bodyOf({ wire, stream: false, order, fields, input: 1, output: 1 }),
      );
      const { status, body: said } = await site.post(path[wire], body, { key });
      if (
        ![402, 429].includes(status) ||
        !said.includes("has no price for") ||
        site.up.count !== before
      )
        wrong.push(`${wire} ${JSON.stringify(fields)}: ${status} ${said.slice(0, 200)}`);
    }
    site.noted(
      `billing: tools and tiers without a price, on a budget: ${asks.length} refused by name`,
    );
    return wrong;
  },
};

export const attacks: readonly Attack[] = [
  ...CLASSES.map((of): Attack => ({ name: of.name, run: (site) => run(site, of) })),
  hangups,
  refusals,
];
