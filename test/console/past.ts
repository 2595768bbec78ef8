// Two days of calls before a gateway started: in its ledger, and in its request counts.
import { join } from "node:path";
import { writeOutages, writeStats } from "../../src/runtime/requests/request-history.ts";
import { Outages } from "../../src/runtime/requests/outages.ts";
import { RequestStats } from "../../src/runtime/requests/request-stats.ts";
import type { RequestRecord, StoreCommand } from "tollgate/plugin";
import { onFile } from "../plugins/stores/stores-under-test.ts";
import { createChance } from "../rig/rig.ts";

const HOUR = 3_600_000;
const HOURS = 48;
/** A batch of requests at an interval. */
const STEP = HOUR / 12;
const MODELS = ["acme/echo", "acme/lorem", "acme/think", "acme/slow"] as const;

interface Key {
  readonly id: string;
  readonly team: string;
}

/** `stateDir`: of a stopped gateway. */
export async function writePast(
  stateDir: string,
  keys: readonly Key[],
  now: number,
): Promise<void> {
  const luck = createChance(11);
  let at = now - HOURS * HOUR;
  const stats = new RequestStats(() => at);
  const ledger = await onFile(join(stateDir, "store/ledger.db"));
  await ledger.store.open({ instance: "past", name: "past", pid: process.pid } as never);
  for (let n = 0; at < now - STEP; at += STEP) {
    const batch: StoreCommand[] = [];
    const records: RequestRecord[] = [];
    // Days have more traffic than nights.
    const busy =
      2 + Math.round(5 * (1 + Math.sin(((at % 86_400_000) / 86_400_000 - 0.3) * 2 * Math.PI)));
    for (let i = 0; i < busy; i++) {
      const model = MODELS[Math.min(luck.below(MODELS.length), luck.below(MODELS.length))]!;
      const key = keys[luck.below(keys.length)]!;
      const call = callOf(`past${String(++n).padStart(20, "0")}`, at, model, key, luck);
      batch.push(...call.rows);
      records.push(call.record);
    }
    await ledger.store.apply(batch);
    stats.add(records);
  }
  at = now;
  await ledger.dispose();
  await writeStats(stateDir, stats);
  await writeOutages(stateDir, outagesBefore(now));
}

/** Two cooldowns of a provider: one at night for all its models, and one for a single model. */
function outagesBefore(now: number): Outages {
  const outages = new Outages();
  const of = { provider: "acme", credential: "default" };
  const ends = [
    { model: null, kind: "timeout", at: now - 19 * HOUR, ms: 734_000 },
    { model: "think", kind: "overloaded", at: now - 3 * HOUR, ms: 95_000 },
  ] as const;
  for (const { model, kind, at, ms } of ends) {
    outages.onEvent({
      type: "cooldown_started",
      at,
      ...of,
      model,
      reason: kind,
      until: at + 60_000,
    });
    outages.onEvent({ type: "cooldown_ended", at: at + ms, ...of, model });
  }
  return outages;
}

function callOf(
  request: string,
  at: number,
  model: string,
  key: Key,
  luck: ReturnType<typeof createChance>,
) {
  const [provider, name] = model.split("/") as [string, string];
  const [input, output] = [200 + luck.below(4_000), 40 + luck.below(700)];
  const usage = { input, output };
  const costNano = BigInt(input * 2_500 + output * 9_000);
  const failed = luck.often(0.015);
  const ms = {
    headers: 90 + luck.below(200),
    firstToken: 120 + luck.below(420),
    total: 500 + luck.below(2_600),
  };
  const attempt = `${request}.1`;
  const asked = {
    model,
    frontend: "chat-completions",
    protocol: "chat-completions",
    mode: "translated",
    stream: true,
  } as const;
  const target = { provider, model: name, protocol: null, credential: "default" };
  const rows = [
    {
      do: "reserve",
      at,
      attempt,
      request,
      number: 1,
      key: key.id,
      target,
      privacy: "off",
      labels: { team: key.team },
      claims: [],
      holdNano: costNano * 2n,
      price: null,
      clientRequest: asked,
    },
    {
      do: "settle",
      at: at + ms.total,
      attempt,
      state: "exact",
      usage,
      costNano,
      outcome: failed ? "overloaded" : "ok",
      finish: "stop",
      ms,
    },
  ] as unknown as StoreCommand[];
  const fault = failed ? { kind: "overloaded", code: undefined } : undefined;
  const record = {
    at,
    id: request,
    outcome: failed ? "upstream_error" : "ok",
    frontend: "chat-completions",
    key: key.id,
    cached: false,
    privacy: "off",
    ms: ms.total,
    firstTokenMs: failed ? undefined : ms.firstToken,
    overheadMs: 0.6 + luck.below(120) / 100,
    labels: {},
    status: failed ? 502 : 200,
    calls: [
      {
        n: 1,
        provider,
        model: name,
        credential: "default",
        state: "exact",
        usage,
        costNano,
        fault,
        ms,
      },
    ],
  } as unknown as RequestRecord;
  return { rows, record };
}
