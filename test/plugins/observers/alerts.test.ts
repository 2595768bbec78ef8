// The parts of the observer `alerts`: alerts and their frequency, signatures, and alerts for a
// receiver that is down.
import { createWebhookHeaders, parseWebhookSecret } from "tollgate/plugin";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import OpenAI from "openai";
import { describe, expect, it, onTestFinished } from "vitest";
import type {
  Context,
  ChargeRecord,
  ListedModel,
  GatewayEvent,
  RequestRecord,
} from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import alerts from "../../../plugins/observers/alerts.ts";
import {
  createAlert,
  RECOVERY_OF,
  ALERT_EVENTS,
  RUNBOOK_PAGES,
  type Alert,
  type AlertSource,
  findReceivers,
} from "../../../plugins/observers/alerts/alert.ts";
import {
  certificateAlerts,
  expiryAlerts,
} from "../../../plugins/observers/alerts/expiry-alerts.ts";
import {
  Delivery,
  sendAlert,
  type Receiver,
  formatChatMessage,
} from "../../../plugins/observers/alerts/delivery.ts";
import {
  OngoingFailures,
  fromCharge,
  fromEvent,
  fromRequest,
} from "../../../plugins/observers/alerts/alert-sources.ts";
import { Outbox } from "../../../plugins/observers/alerts/outbox.ts";
import {
  lastCompletePeriod,
  createDigest,
} from "../../../plugins/observers/alerts/spend-digest.ts";
import { checkSpend, typicalSpend } from "../../../plugins/observers/alerts/unusual-spend.ts";
import { trialCount } from "../../kit/law-effort.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOON = Date.UTC(2026, 5, 1, 12);
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

const folder = () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-alerts-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return join(dir, "queue.jsonl");
};
const happening = (more: Partial<AlertSource> = {}): AlertSource => ({
  type: "ledger.down",
  at: NOON,
  subject: "ledger",
  dedupKey: [NOON],
  filterValues: {},
  data: {},
  ...more,
});
const nth = (n: number, subject = "ledger", at = NOON): Alert =>
  createAlert(happening({ subject, at, dedupKey: [n], data: { n } }), "here");
const silent = { debug() {}, info() {}, warn() {}, error() {} };

describe("signatures", () => {
  const judge = new OpenAI({ apiKey: "k", webhookSecret: SECRET });
  const [alert, now] = [nth(1), Date.now()];
  const body = JSON.stringify(alert);
  const headers = createWebhookHeaders(alert.id, body, parseWebhookSecret(SECRET), now);

  it("are accepted by another implementation of Standard Webhooks, and rejected with another secret", async () => {
    expect(await judge.webhooks.unwrap(body, headers)).toEqual(alert);
    const other = `whsec_${Buffer.alloc(32, 8).toString("base64")}`;
    await expect(judge.webhooks.unwrap(body, headers, other)).rejects.toThrow();
  });

  it("are valid for this text, ID, and time only", async () => {
    const changed = [
      [body.replace("here", "there"), headers],
      [body, { ...headers, "webhook-id": "msg_1" }],
      [body, { ...headers, "webhook-timestamp": String(Math.floor(now / 1_000) + 1) }],
      [body, createWebhookHeaders(alert.id, body, parseWebhookSecret(SECRET), now - HOUR)],
    ] as const;
    for (const [text, said] of changed)
      await expect(judge.webhooks.unwrap(text, said)).rejects.toThrow();
  });

  it.each([
    ["", undefined],
    ["whsec_", undefined],
    ["secret", undefined],
    [`whsec_${Buffer.alloc(23).toString("base64")}`, undefined],
    [`whsec_${Buffer.alloc(65).toString("base64")}`, undefined],
    [`whsec_${"!".repeat(40)}`, undefined],
    [`whsec_${Buffer.alloc(24, 1).toString("base64")}`, 24],
  ])("a secret of %j has %j bytes", (text, bytes) => {
    expect(parseWebhookSecret(text)?.length).toBe(bytes);
  });

  it("a webhook without a secret is rejected, and so is a rule for an unknown receiver", () => {
    const wrong = [
      ...alerts.check!({
        receivers: {
          bare: { url: "https://a.example", format: "webhook" },
          empty: { url: "https://a.example", format: "webhook", secret: "" },
          "a/b": { url: "https://a.example", format: "slack", secret: "whsec_" },
          chat: { url: "https://a.example", format: "slack" },
        },
        rules: [{ to: ["chat", "chta"] }],
      } as never),
    ];
    expect(wrong.map(({ path }) => path)).toEqual([
      "/receivers/bare",
      "/receivers/empty/secret",
      "/receivers/a~1b/secret",
      "/rules/0/to/1",
    ]);
  });
});

describe("alerts", () => {
  const at = NOON;
  const rests = (more: object = {}): GatewayEvent =>
    ({
      type: "cooldown_started",
      at,
      provider: "up",
      credential: "main",
      model: "m",
      reason: "overloaded",
      until: at + 1,
      ...more,
    }) as GatewayEvent;
  const crossed = (more: object = {}): GatewayEvent =>
    ({
      type: "budget_threshold_reached",
      at,
      scope: "account:acme:eu",
      unit: "nano_usd",
      per: "month",
      percent: 80,
      used: 8_500_000_000n,
      max: 10_000_000_000n,
      resetsAt: Date.UTC(2026, 6, 1),
      ...more,
    }) as GatewayEvent;

  it("a budget: its amounts in readable form, and one ID per threshold, limit, and window", () => {
    const one = fromEvent(crossed(), new OngoingFailures())!;
    expect(one).toMatchObject({
      type: "budget.threshold_reached",
      subject: "account:acme:eu",
      filterValues: { account: "acme:eu", key: undefined },
      percent: 80,
      data: { limit: "usd=10/month", used: "8.5", resetsAt: "2026-07-01T00:00:00.000Z" },
    });
    const id = (more: object, gateway = "g") =>
      createAlert(fromEvent(crossed(more), new OngoingFailures())!, gateway).id;
    expect(id({ at: at + 9, used: 9_000_000_000n })).toBe(id({}));
    const others = [
      { percent: 95 },
      { max: 11n },
      { per: "day" },
      { resetsAt: 1 },
      { scope: "key:k" },
    ];
    expect(new Set([id({}), id({}, "h"), ...others.map((more) => id(more))]).size).toBe(7);
  });

  it("a member of a scope: one ID per window, and no hash of its owner", () => {
    const of = (more: object = {}) => {
      const member = { scope: "~session.owner~60~hash", per: "total", resetsAt: at, ...more };
      return fromEvent(crossed(member), new OngoingFailures())!;
    };
    expect(of()).toMatchObject({ subject: "scope:session", data: { scope: "scope:session" } });
    const id = (more: object = {}) => createAlert(of(more), "g").id;
    // The window has started again after an idle time of 60 minutes.
    const others = [{ resetsAt: at + 3_600_000 }, { scope: "~session.owner~60~other" }];
    expect(new Set([id(), ...others.map(id)]).size).toBe(3);
  });

  it("a cooldown: once until the provider recovers, however many processes report it", () => {
    const resting = new OngoingFailures();
    const types = [rests(), rests({ at: at + 1 }), rests({ model: null, reason: "upstream_auth" })];
    expect(types.map((each) => fromEvent(each, resting)?.type)).toEqual([
      "provider.cooldown_started",
      undefined,
      "credential.rejected",
    ]);
    const answers = {
      type: "cooldown_ended",
      at,
      provider: "up",
      credential: "main",
      model: "m",
    } as const;
    expect(fromEvent(answers, resting)?.type).toBe("provider.cooldown_ended");
    expect(fromEvent(answers, resting)).toBeUndefined();
    expect(fromEvent({ ...answers, model: null }, resting)?.type).toBe("credential.recovered");
    expect(fromEvent(rests({ at: at + 2 }), resting)?.type).toBe("provider.cooldown_started");
  });

  it("the ledger and the config: failures only, and no unknown event", () => {
    const of = (notice: object) =>
      fromEvent({ at, ...notice } as GatewayEvent, new OngoingFailures())?.type;
    expect(of({ type: "ledger", ok: false })).toBe("ledger.down");
    expect(of({ type: "ledger", ok: true })).toBeUndefined();
    expect(of({ type: "reloaded", ok: false, trigger: "file", generation: 1 })).toBe(
      "reload.failed",
    );
    expect(of({ type: "reloaded", ok: true, trigger: "file", generation: 1 })).toBeUndefined();
    expect(of({ type: "weather" })).toBeUndefined();
  });

  it("a resolution is sent once, after its alert, and to the receivers of the alert", () => {
    const pairs = fc.constantFrom<GatewayEvent>(
      { type: "ledger", at, ok: false },
      { type: "ledger", at, ok: true },
      { type: "reloaded", at, ok: false, trigger: "file", generation: 1, reason: "line 3" },
      { type: "reloaded", at, ok: true, trigger: "file", generation: 2 },
      rests(),
      rests({ model: null, reason: "upstream_auth" }),
      { type: "cooldown_ended", at, provider: "up", credential: "main", model: "m" },
      { type: "cooldown_ended", at, provider: "up", credential: "main", model: null },
    );
    fc.assert(
      fc.property(fc.array(pairs, { maxLength: 30 }), (notices) => {
        const failures = new OngoingFailures();
        const open = new Set<string>();
        for (const notice of notices) {
          const one = fromEvent(notice, failures);
          if (!one) continue;
          const began = RECOVERY_OF[one.type];
          if (began === undefined) open.add(one.type);
          else expect(open.delete(began)).toBe(true);
          const rules = [{ on: [began ?? one.type] }];
          expect(findReceivers(rules, ["ops"], one)).toEqual(["ops"]);
        }
      }),
    );
  });

  it("certificates: 30, 7, and 1 days before expiry, each once, and again for a renewed one", () => {
    const of = (days: number, expiresAt = NOON + 40 * DAY) =>
      [...certificateAlerts([{ listener: "listen.tls", expiresAt }], NOON + days * DAY)].map(
        (one) => createAlert(one, "g").id,
      );
    const told = [0, 9, 11, 12, 33.5, 34, 39.5, 40.5, 42].map((days) => of(days));
    expect(told.map((each) => each.length)).toEqual([0, 0, 1, 1, 1, 1, 1, 1, 0]);
    expect(new Set(told.flat()).size).toBe(3);
    expect(of(11, NOON + 40 * DAY + 1)).not.toEqual(of(11));
  });

  it("every event except a digest and a resolution has a runbook link", () => {
    for (const type of ALERT_EVENTS) {
      const page = RUNBOOK_PAGES[type];
      const needed = RECOVERY_OF[type] === undefined && type !== "spend.digest";
      expect([type, page !== undefined]).toEqual([type, needed]);
      if (page !== undefined)
        expect(existsSync(new URL(`../../../docs/runbook/${page}.md`, import.meta.url)), page).toBe(
          true,
        );
    }
  });

  it("a rejected key: each reason once per hour, without failures of another key or clients without a key", () => {
    const of = (more: object) =>
      fromRequest({
        at,
        key: "k1",
        account: "acme/research",
        outcome: "refused",
        status: 429,
        fault: { kind: "quota", code: "insufficient_quota" },
        ...more,
      } as RequestRecord);
    const id = (more: object) => createAlert(of(more)!, "g").id;
    expect(of({})).toMatchObject({ type: "key.rejected", subject: "key:k1" });
    expect(id({ at: at + HOUR - 1 })).toBe(id({}));
    expect(id({ at: at + HOUR })).not.toBe(id({}));
    expect(id({ fault: { kind: "privacy", code: undefined } })).not.toBe(id({}));
    expect(of({ key: undefined })).toBeUndefined();
    expect(of({ outcome: "upstream_error" })).toBeUndefined();
  });

  it("a model without a price: once per day", () => {
    const line = { at, attempt: "a", costNano: null, state: "unpriced" } as ChargeRecord;
    const call = { key: "k1", target: { provider: "up", model: "m" } } as ChargeRecord["call"];
    expect(fromCharge({ ...line, call })).toMatchObject({
      subject: "model:up/m",
      dedupKey: ["up/m", 20605],
    });
    expect(fromCharge({ ...line, call, state: "exact", costNano: 1n })).toBeUndefined();
    expect(fromCharge(line)).toBeUndefined();
  });

  it("dates: 30, 7, and 1 days before, each once, and one per provider policy", () => {
    const model = (id: string, more: object) =>
      ({ id, provider: "up", policy: { basis: "row" }, ...more }) as ListedModel;
    const models = [
      model("up/a", { retires: "2026-07-01", policy: { basis: "row", expires: "2026-06-20" } }),
      model("up/b", { policy: { basis: "row", expires: "2026-06-20" } }),
      model("up/c", { retires: "2026-05-01" }),
    ];
    const ids = new Map<string, string>();
    for (let day = 0; day < 60; day++)
      for (const one of expiryAlerts(models, Date.UTC(2026, 4, 10) + day * DAY))
        ids.set(createAlert(one, "g").id, `${one.type} ${one.dedupKey.at(-1)}`);
    expect([...ids.values()].sort()).toEqual([
      "model.retires 1",
      "model.retires 30",
      "model.retires 7",
      "policy.expires 1",
      "policy.expires 30",
      "policy.expires 7",
    ]);
  });

  it("spend: more than four times the usual amount of this hour and above the minimum, after three days of data", async () => {
    const unusual = { factor: 4, minNano: 1_000_000_000n };
    const asked: unknown[] = [];
    const now = NOON + 40 * 60_000;
    const spend = (days: readonly number[], here: number) =>
      checkSpend(
        {
          listEntries: async () => ({ items: [] }),
          sumEntries: async (query) => {
            asked.push(query);
            return [here, ...days].map((usd, day) => ({
              by: { hour: `${new Date(NOON - day * DAY).toISOString().slice(0, 13)}:00Z` },
              costNano: BigInt(Math.round(usd * 1e9)),
            })) as never;
          },
        },
        unusual,
        now,
      );
    expect(await spend([1, 2, 100], 8.1)).toMatchObject({
      type: "spend.unusual",
      data: { usd: "8.1", usualUsd: "2", hour: "2026-06-01T12:00:00.000Z" },
    });
    expect(asked[0]).toEqual({ from: NOON - 14 * DAY, by: ["hour"] });
    expect(await spend([1, 2, 100], 8)).toBeUndefined();
    expect(await spend([0, 0, 0], 1)).toBeUndefined();
    expect(await spend([0, 0, 0], 1.1)).toBeDefined();
    expect(await spend([1], 50)).toBeUndefined();
  });

  it("a digest covers the last full day or week, with the previous one for comparison", async () => {
    const asked: { from: number; to: number }[] = [];
    const told = (every: "day" | "week", calls: number) =>
      createDigest(
        {
          listEntries: async () => ({ items: [] }),
          sumEntries: async (query) => {
            asked.push(query as never);
            const of = (model: string, nano: bigint) => ({ by: { model }, calls, costNano: nano });
            return [of("a/small", 5n), of("a/large", 2_500_000_000n)] as never;
          },
        },
        every,
        NOON,
      );
    expect(await told("day", 3)).toMatchObject({
      type: "spend.digest",
      dedupKey: ["day", NOON - 1.5 * DAY],
      data: { calls: 6, usd: "2.500000005", models: "a/large 2.5, a/small 0.000000005" },
    });
    expect(asked).toMatchObject([
      { from: NOON - 1.5 * DAY, to: NOON - DAY / 2 },
      { from: NOON - 2.5 * DAY, to: NOON - 1.5 * DAY },
    ]);
    // The first of June 2026 is a Monday.
    expect(lastCompletePeriod("week", NOON)).toEqual({
      from: NOON - 7.5 * DAY,
      to: NOON - DAY / 2,
    });
    expect(await told("week", 0)).toBeUndefined();
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e12 }), (now) => {
        const { from, to } = lastCompletePeriod("week", now);
        expect([to - from, new Date(from).getUTCDay(), Math.abs(from % DAY)]).toEqual([
          7 * DAY,
          1,
          0,
        ]);
        expect(to <= now && now - to < 7 * DAY).toBe(true);
      }),
    );
  });

  it("the usual amount is the median of the same hour, whatever the other hours were", () => {
    fc.assert(
      fc.property(
        fc.array(fc.bigInt({ min: 0n, max: 10n ** 12n }), { minLength: 3, maxLength: 14 }),
        (days) => {
          const spent = new Map(days.map((nano, i) => [NOON - (i + 1) * DAY, nano]));
          for (let i = 1; i < 12; i++) spent.set(NOON - i * HOUR, 10n ** 15n);
          const usual = typicalSpend(spent, NOON)!;
          const half = days.length / 2;
          expect(days.filter((nano) => nano < usual).length).toBeLessThanOrEqual(half);
          expect(days.filter((nano) => nano > usual).length).toBeLessThanOrEqual(half);
        },
      ),
      { numRuns: trialCount(50) },
    );
  });

  it("a sentence contains no markup of chats, whatever a name contains", () => {
    for (const type of [...ALERT_EVENTS, "alerts.test"] as const) {
      const alert = { ...nth(1, "<!channel> & <https://x|y>"), type };
      expect(formatChatMessage(alert)).toContain("&lt;!channel&gt; &amp; &lt;https://x|y&gt;");
      expect(formatChatMessage(alert)).not.toMatch(/[<>]/);
    }
  });
});

describe("rules", () => {
  const all = ["ops", "chat"];
  const of = (rules: Parameters<typeof findReceivers>[0], more: Partial<AlertSource> = {}) =>
    findReceivers(rules, all, happening(more));
  it("select the receivers of each event, each receiver once", () => {
    expect(of([{}])).toEqual(all);
    expect(of([{ on: ["budget.threshold_reached"] }])).toEqual([]);
    expect(of([{ to: ["chat"] }, { on: ["ledger.down"], to: ["chat", "ops"] }])).toEqual([
      "chat",
      "ops",
    ]);
  });
  it("match fields of the event; an event without the field does not match", () => {
    const facets = { account: "acme/research", model: "up/gpt-6", key: "k1" };
    const fits = (where: object, percent?: number) =>
      of([{ where }], { filterValues: facets, ...(percent !== undefined && { percent }) }).length >
      0;
    expect(fits({ account: ["acme"] })).toBe(true);
    expect(fits({ account: ["res*"] })).toBe(true);
    expect(fits({ account: ["other"] })).toBe(false);
    expect(fits({ model: ["up/*-6"], key: ["k1", "k2"] })).toBe(true);
    expect(fits({ model: ["up/gpt-6*6"] })).toBe(false);
    expect(fits({ provider: ["*"] })).toBe(false);
    expect(fits({ percent: [80] }, 80)).toBe(true);
    expect(fits({ percent: [80] })).toBe(false);
  });
});

const receiver: Receiver = {
  name: "ops",
  url: "https://ops.example/hook",
  format: "webhook",
  secret: parseWebhookSecret(SECRET),
};

/** A receiver with configurable responses, and a clock that a test moves. */
function scene(path: string, takes: (alert: Alert, now: number) => boolean) {
  const heard: { id: string; subject: string; n: number; taken: boolean }[] = [];
  let now = NOON;
  const fetch: Context["fetch"] = async (_url, init) => {
    const alert = JSON.parse(String(init?.body)) as Alert;
    const taken = takes(alert, now);
    heard.push({ id: alert.id, subject: alert.subject, n: alert.data["n"] as number, taken });
    return new Response(null, { status: taken ? 204 : 503 });
  };
  let outbox = new Outbox(path);
  onTestFinished(() => outbox.close());
  const made = () =>
    new Delivery(receiver, { outbox, fetch, log: silent, retryMs: 5_000, now: () => now });
  let delivery = made();
  return {
    heard,
    get outbox() {
      return outbox;
    },
    get now() {
      return now;
    },
    add: (alert: Alert, most = 1_000) => outbox.add(alert, ["ops"], most),
    go: () => delivery.deliverDue(),
    async pass(ms: number, steps = 1) {
      for (let i = 0; i < steps; i++) {
        now += ms / steps;
        await delivery.deliverDue();
      }
    },
    async restart() {
      await outbox.close();
      outbox = new Outbox(path);
      delivery = made();
    },
  };
}

describe("delivery", () => {
  it("after an hour without its receiver, all alerts arrive once and in order per subject", async () => {
    const at = scene(folder(), (_alert, now) => now >= NOON + HOUR);
    for (let n = 0; n < 60; n++) {
      await at.add(nth(n, `key:${n % 7}`, at.now));
      await at.pass(60_000);
    }
    await at.pass(2 * HOUR, 400);
    const taken = at.heard.filter((one) => one.taken);
    expect(taken).toHaveLength(60);
    expect(new Set(taken.map(({ id }) => id)).size).toBe(60);
    for (const numbers of Map.groupBy(taken, ({ subject }) => subject).values())
      expect(numbers.map(({ n }) => n)).toEqual(
        numbers.map(({ n }) => n).toSorted((a, b) => a - b),
      );
    // It is retried, with pauses.
    expect(at.heard.length - taken.length).toBeLessThan(200);
    expect(at.outbox.pending).toEqual([]);
  });

  it("an alert that is never accepted blocks no other subject, and is dropped after a day", async () => {
    const at = scene(folder(), ({ subject }) => subject !== "key:bad");
    await at.add(nth(0, "key:bad"));
    await at.add(nth(1, "key:bad"));
    await at.add(nth(2, "key:good"));
    await at.go();
    await at.pass(10 * 60_000, 60);
    expect(at.heard.filter(({ taken }) => taken).map(({ n }) => n)).toEqual([2]);
    await at.pass(26 * HOUR, 2_000);
    await at.pass(HOUR, 100);
    expect(at.outbox.pending).toEqual([]);
    expect(at.outbox.counts).toEqual({ sent: 1, lost: 2 });
  });

  it("after any mix of additions, rejections, interruptions, and restarts, all arrive in order per subject, under one ID", async () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.record({ add: fc.nat(3), again: fc.boolean() }) },
      { weight: 3, arbitrary: fc.record({ pass: fc.constantFrom(1_000, 60_000, HOUR) }) },
      { weight: 1, arbitrary: fc.constantFrom("down" as const, "up" as const) },
      { weight: 1, arbitrary: fc.constantFrom("restart" as const, "cut" as const) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const dir = mkdtempSync(join(tmpdir(), "tollgate-alerts-"));
        const path = join(dir, "queue.jsonl");
        let up = true;
        const at = scene(path, () => up);
        const added: { id: string; subject: string }[] = [];
        for (const step of steps) {
          if (step === "down" || step === "up") up = step === "up";
          else if (step === "restart") await at.restart();
          else if (step === "cut") {
            appendFileSync(path, '{"queued":{"receiver":"ops","al');
            await at.restart();
          } else if ("pass" in step) await at.pass(step.pass, 3);
          else {
            const alert = nth(added.length, `key:${step.add}`, at.now);
            expect(await at.add(alert)).toBe(true);
            if (step.again) expect(await at.add(alert)).toBe(false);
            added.push(alert);
          }
        }
        up = true;
        await at.pass(4 * HOUR, 200);
        const taken = at.heard.filter((one) => one.taken);
        expect(taken.map(({ id }) => id).toSorted()).toEqual(added.map(({ id }) => id).toSorted());
        for (const [subject, of] of Map.groupBy(taken, (one) => one.subject))
          expect(of.map(({ id }) => id)).toEqual(
            added.filter((one) => one.subject === subject).map(({ id }) => id),
          );
        await at.outbox.close();
        rmSync(dir, { recursive: true });
      }),
      { numRuns: trialCount(40) },
    );
  });

  it("alerts beyond the limit are dropped and counted; the file stays small under load", async () => {
    const path = folder();
    const at = scene(path, () => true);
    for (let n = 0; n < 5; n++) await at.add(nth(n), 3);
    expect(at.outbox.counts.lost).toBe(2);
    for (let n = 5; n < 1_500; n++) {
      await at.add(nth(n));
      if (n % 10 === 0) await at.go();
    }
    await at.go();
    expect(at.outbox.pending).toEqual([]);
    // Each alert takes three lines in transit. Only its ID remains.
    expect(readFileSync(path, "utf8").split("\n").length).toBeLessThan(4_100);
    await at.restart();
    expect(readFileSync(path, "utf8").split("\n").length).toBeLessThan(1_510);
    expect(await at.add(nth(1_499))).toBe(false);
  });

  it("nothing is reopened by an event or a delivery after the end", async () => {
    const at = scene(folder(), () => true);
    await at.add(nth(1));
    await at.outbox.close();
    await expect(at.add(nth(2))).rejects.toThrow("closed");
    await at.go();
    expect(at.heard).toHaveLength(2);
  });

  it("a redirect and a failure are no delivery; a chat receives a sentence", async () => {
    const said: string[] = [];
    const answering = (status: number) => async (_url: unknown, init?: { body?: unknown }) => {
      said.push(String(init?.body));
      return new Response(null, { status });
    };
    expect(await sendAlert(receiver, nth(1), answering(302) as never, NOON)).toBe(
      "the receiver returned status 302",
    );
    expect(await sendAlert(receiver, nth(1), answering(204) as never, NOON)).toBeUndefined();
    expect(
      await sendAlert(receiver, nth(1), async () => Promise.reject(new Error("no way")), NOON),
    ).toBe("the receiver is unreachable");
    await sendAlert({ ...receiver, format: "slack" }, nth(1), answering(200) as never, NOON);
    expect(JSON.parse(said.at(-1)!)).toEqual({ text: formatChatMessage(nth(1)) });
  });
});

it("reports a bill that differs once per provider and day, and a budget once per window", () => {
  const failures = new OngoingFailures();
  const bill = (day: string) =>
    fromEvent(
      {
        type: "plugin_event",
        at: NOON,
        plugin: "observers.reconcile",
        name: "bill_differs",
        data: {
          provider: "openai",
          day,
          differenceUsd: "1.5",
          causes: { outside: "1", price: "0.5" },
        },
      },
      failures,
    )!;
  expect(bill("2026-05-30")).toMatchObject({
    type: "bill.differs",
    subject: "provider:openai",
    filterValues: { provider: "openai" },
    data: { day: "2026-05-30", differenceUsd: "1.5", causes: "outside 1, price 0.5" },
  });
  const id = (source: AlertSource) => createAlert(source, "here").id;
  expect(id(bill("2026-05-30"))).toBe(id({ ...bill("2026-05-30"), at: NOON + HOUR }));
  expect(id(bill("2026-05-30"))).not.toBe(id(bill("2026-05-31")));
  const other = { type: "plugin_event", at: NOON, plugin: "x", name: "other", data: {} } as const;
  expect(fromEvent(other, failures)).toBeUndefined();
  const budget = (at: number, resetsAt: number) =>
    fromEvent(
      {
        type: "budget_exhausts",
        at,
        scope: "account:acme/research",
        limit: "usd=100/month",
        usedUsd: "90",
        maxUsd: "100",
        perDayUsd: "2",
        exhaustsAt: NOON + 5 * DAY,
        resetsAt,
      },
      failures,
    )!;
  expect(budget(NOON, NOON + 9 * DAY)).toMatchObject({
    type: "budget.exhausts",
    subject: "account:acme/research",
    filterValues: { account: "acme/research" },
    data: { perDayUsd: "2", exhaustsAt: new Date(NOON + 5 * DAY).toISOString() },
  });
  expect(id(budget(NOON, NOON + 9 * DAY))).toBe(id(budget(NOON + HOUR, NOON + 9 * DAY)));
  expect(id(budget(NOON, NOON + 9 * DAY))).not.toBe(id(budget(NOON, NOON + 40 * DAY)));
});

it("mounted, it delivers by rules, has a test command, and counts queued alerts", async () => {
  const posts: { url: string; body: Record<string, unknown> }[] = [];
  await using test = createTestContext({
    fetch: async (url, init) => {
      posts.push({ url: String(url), body: JSON.parse(String(init?.body)) });
      return new Response(null, { status: String(url).includes("down") ? 500 : 200 });
    },
  });
  const observer = await alerts.setup(
    {
      receivers: {
        ops: { url: "https://ops.example", format: "webhook", secret: SECRET },
        down: { url: "https://down.example", format: "slack" },
      },
      rules: [{ on: ["ledger.down"] }, { on: ["reload.failed"], to: ["ops"] }],
      gateway: "here",
      unusual_spend: { factor: 4, min_usd: 1 },
      queue_size: 10,
      retry_ms: 60_000,
    },
    test.ctx,
  );
  const at = Date.now();
  expect(observer.onRequests).toBeUndefined();
  await observer.onEvent!({ type: "ledger", at, ok: false });
  await observer.onEvent!({ type: "ledger", at, ok: false });
  await observer.onEvent!({ type: "reloaded", at, ok: false, trigger: "file", generation: 3 });
  await observer.flush!();
  expect(posts.map(({ url }) => url).toSorted()).toEqual([
    "https://down.example",
    "https://ops.example",
    "https://ops.example",
  ]);
  expect(posts.filter(({ url }) => url.includes("ops")).map(({ body }) => body["type"])).toEqual([
    "ledger.down",
    "reload.failed",
  ]);
  const run = (name: string, input = {}) => observer.commands![name]!.run(input);
  expect(await run("state")).toEqual({ waiting: { ops: 0, down: 1 }, sent: 2, lost: 0 });
  expect(await run("test", { receiver: "down" })).toMatchObject([
    { receiver: "down", ok: false, reason: "the receiver returned status 500" },
  ]);
  expect(await run("test")).toMatchObject([
    { receiver: "ops", ok: true },
    { receiver: "down", ok: false },
  ]);
});
