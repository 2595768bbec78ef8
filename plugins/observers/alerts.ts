// Notifies operators of events that need attention, by signed webhook or chat message. An alert is
// written to disk before the gateway treats it as accepted. Delivery is retried for one day.
import { parseWebhookSecret, WEBHOOK_SECRET_HINT } from "tollgate/plugin";
import { join } from "node:path";
import { defineObserver, type Context, type Problem } from "tollgate/plugin";
import {
  createAlert,
  ALERT_EVENTS,
  type AlertEvent,
  type AlertSource,
  includesEvent,
  findReceivers,
  type AlertRule,
} from "./alerts/alert.ts";
import { certificateAlerts, expiryAlerts } from "./alerts/expiry-alerts.ts";
import { type DigestPeriod, lastCompletePeriod, createDigest } from "./alerts/spend-digest.ts";
import { Delivery, type Receiver, createTestCommand } from "./alerts/delivery.ts";
import { OngoingFailures, fromCharge, fromEvent, fromRequest } from "./alerts/alert-sources.ts";
import { Outbox } from "./alerts/outbox.ts";
import { checkSpend } from "./alerts/unusual-spend.ts";

const SECOND_MS = 1_000;
/** This is less than the 5 s that the gateway waits for an observer to shut down. */
const FLUSH_TIMEOUT_MS = 3_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 86_400_000;
/** Interval of the check for unusual spend in the current hour. */
const SPEND_CHECK_MS = 5 * MINUTE_MS;

const patternsOption = (description: string) =>
  ({ type: "array", items: { type: "string", minLength: 1 }, minItems: 1, description }) as const;
const integerOption = (description: string, standard: number, maximum: number) =>
  ({ type: "integer", minimum: 1, maximum, default: standard, description }) as const;

export default defineObserver({
  api: 1,
  name: "alerts",
  summary: "Send alerts to signed webhooks and chats",
  stability: "beta",
  sends: { retention: { kind: "unknown" }, trains: "unknown" },
  options: {
    type: "object",
    additionalProperties: false,
    required: ["receivers"],
    properties: {
      receivers: {
        type: "object",
        minProperties: 1,
        description: "Receivers by name",
        additionalProperties: {
          type: "object",
          additionalProperties: false,
          required: ["url"],
          properties: {
            url: {
              type: "string",
              pattern: "^https?://",
              "x-expects": "an address such as https://hooks.example.com/tollgate",
              "x-origin": true,
              "x-secret": true,
              description: "URL of the receiver. Chat URLs often contain a secret",
            },
            format: {
              enum: ["webhook", "slack"],
              default: "webhook",
              description:
                "Message format: webhook (signed JSON) or a chat message in the format of Slack",
            },
            secret: {
              type: "string",
              "x-secret": true,
              description:
                "Secret that signs the webhook messages: whsec_ and 24 to 64 bytes in base64. " +
                "Required for webhooks",
            },
          },
        },
      },
      rules: {
        type: "array",
        minItems: 1,
        description:
          "Routing rules from events to receivers. If unset, each receiver gets all events",
        items: {
          type: "object",
          additionalProperties: false,
          properties: {
            on: {
              type: "array",
              items: { enum: ALERT_EVENTS },
              minItems: 1,
              uniqueItems: true,
              description: "Event types. Default: all",
            },
            where: {
              type: "object",
              additionalProperties: false,
              minProperties: 1,
              description: "Filters. An event that lacks a filtered field does not match",
              properties: {
                account: patternsOption("Accounts, including the accounts nested under them"),
                key: patternsOption("Key IDs"),
                provider: patternsOption("Provider names from gateway.yaml"),
                model: patternsOption('Models, for example "openai/gpt-*"'),
                credential: patternsOption("Credential names"),
                code: patternsOption(
                  "Error codes of rejected requests, and kinds of provider errors",
                ),
                percent: {
                  type: "array",
                  items: { enum: [50, 80, 95, 100] },
                  minItems: 1,
                  uniqueItems: true,
                  description: "Budget thresholds, in percent",
                },
              },
            },
            to: patternsOption("Receiver names. Default: all"),
          },
        },
      },
      gateway: {
        type: "string",
        minLength: 1,
        maxLength: 100,
        default: "tollgate",
        description:
          "Name of this gateway in alerts. Gateways that share a ledger need the same name",
      },
      unusual_spend: {
        type: "object",
        additionalProperties: false,
        default: {},
        description: "Thresholds for the alert about unusual spend",
        properties: {
          factor: integerOption(
            "Minimum ratio of the spend in this hour to the usual spend in the same hour of " +
              "the last 14 days",
            4,
            1_000,
          ),
          min_usd: integerOption("Minimum spend in the hour, in US dollars", 1, 1_000_000),
        },
      },
      digest: {
        enum: ["day", "week"],
        description: "Interval of the spend digest. If unset, no digest is sent",
      },
      queue_size: integerOption(
        "Maximum number of queued alerts. Further alerts are dropped and counted",
        1_000,
        100_000,
      ),
      retry_ms: integerOption(
        "Delay before an alert is sent again, in milliseconds. It doubles with each " +
          "retry, up to 1 hour. Retries stop after 1 day",
        5_000,
        3_600_000,
      ),
    },
  },
  *check({ receivers, rules = [] }): Generator<Problem> {
    const names = Object.keys(receivers);
    for (const [name, { format, secret }] of Object.entries(receivers)) {
      const path = `/receivers/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      if (secret === undefined && format === "webhook")
        yield {
          path,
          message: "has no secret, so the receiver cannot verify the sender",
          hint: WEBHOOK_SECRET_HINT,
        };
      else if (secret !== undefined && !parseWebhookSecret(secret))
        yield {
          path: `${path}/secret`,
          message: "is not a valid webhook secret",
          hint: WEBHOOK_SECRET_HINT,
        };
    }
    for (const [i, rule] of rules.entries())
      for (const [j, name] of (rule.to ?? []).entries())
        if (!Object.hasOwn(receivers, name))
          yield {
            path: `/rules/${i}/to/${j}`,
            message: `names an unknown receiver: ${name}`,
            hint: `the receivers are ${names.join(", ")}`,
          };
  },
  setup(options, ctx) {
    const { gateway, queue_size: queueSize, retry_ms: retryMs } = options;
    const receivers = Object.entries(options.receivers).map(
      ([name, { secret, ...to }]): Receiver => {
        return {
          name,
          ...to,
          secret: secret === undefined ? undefined : parseWebhookSecret(secret),
        };
      },
    );
    const names = receivers.map(({ name }) => name);
    const rules: readonly AlertRule[] = options.rules ?? [{}];
    const wanted = (type: AlertEvent) =>
      rules.some(({ on = ALERT_EVENTS }) => includesEvent(on, type));
    const outbox = ctx.shared(
      "outbox",
      () => new Outbox(join(ctx.stateDir(), "queue.jsonl")),
      (made) => made.close(),
    );
    const failures = ctx.shared("failures", () => new OngoingFailures());
    const over = new AbortController();
    const { fetch, log } = ctx;
    const deliveries = receivers.map(
      (to) => new Delivery(to, { outbox, fetch, log, retryMs, abortSignal: over.signal }),
    );
    const go = () => Promise.all(deliveries.map((each) => each.deliverDue()));
    /** Resolves when the alert is on disk. */
    const tell: SendAlert = async (happening) => {
      const to = happening ? findReceivers(rules, names, happening) : [];
      if (!happening || to.length === 0) return;
      const before = outbox.counts.lost;
      const isNew = await outbox.add(createAlert(happening, gateway), to, queueSize);
      if (outbox.counts.lost > before)
        ctx.log.error({ type: happening.type }, "alert queue full, alert dropped");
      if (isNew) void go();
    };
    ctx.runEvery(SECOND_MS, go);
    scheduleChecks(ctx, wanted, options.unusual_spend, tell);
    if (options.digest && wanted("spend.digest")) scheduleDigest(ctx, options.digest, tell);

    return {
      onEvent: (notice) => tell(fromEvent(notice, failures)),
      ...(wanted("key.rejected") && {
        async onRequests(batch) {
          for (const record of batch) await tell(fromRequest(record));
        },
      }),
      ...(wanted("calls.unpriced") && {
        async onCharges(lines) {
          for (const line of lines) await tell(fromCharge(line));
        },
      }),
      async flush() {
        // Stops waiting for a receiver that hangs. The next config generation retries the alerts
        // that the receiver has not acknowledged.
        const late = setTimeout(() => over.abort(), FLUSH_TIMEOUT_MS);
        await go();
        clearTimeout(late);
      },
      commands: {
        test: createTestCommand(receivers, gateway, ctx.fetch),
        state: {
          summary: "Show queued, sent, and lost alerts per receiver",
          role: "viewer",
          writes: false,
          run: async () => ({
            waiting: Object.fromEntries(
              names.map((name) => [
                name,
                outbox.pending.filter(({ receiver }) => receiver === name).length,
              ]),
            ),
            ...outbox.counts,
          }),
        },
      },
    };
  },
});

type SendAlert = (happening: AlertSource | undefined) => Promise<void>;

/**
 * Schedules the checks for alerts that no gateway event triggers: expiry dates and hourly spend.
 */
function scheduleChecks(
  ctx: Pick<Context, "runEvery" | "catalog" | "ledger" | "stats">,
  wanted: (type: AlertEvent) => boolean,
  { factor, min_usd: minUsd }: { readonly factor: number; readonly min_usd: number },
  tell: SendAlert,
): void {
  if (wanted("policy.expires") || wanted("model.retires")) {
    let today: number | undefined;
    ctx.runEvery(MINUTE_MS, async () => {
      const day = Math.floor(Date.now() / DAY_MS);
      if (day === today) return;
      today = day;
      for (const one of expiryAlerts(ctx.catalog.list({}), Date.now())) await tell(one);
    });
  }
  if (wanted("certificate.expires"))
    ctx.runEvery(HOUR_MS, async () => {
      const { certificates } = await ctx.stats();
      for (const one of certificateAlerts(certificates, Date.now())) await tell(one);
    });
  const unusual = { factor, minNano: BigInt(minUsd) * 1_000_000_000n };
  if (wanted("spend.unusual"))
    ctx.runEvery(SPEND_CHECK_MS, async () =>
      tell(await checkSpend(ctx.ledger, unusual, Date.now())),
    );
}

/**
 * Checks every minute whether a digest is due. The alert ID prevents duplicates, even after a
 * restart.
 */
function scheduleDigest(
  { runEvery, ledger }: Pick<Context, "runEvery" | "ledger">,
  of: DigestPeriod,
  tell: SendAlert,
): void {
  let lastSent: number | undefined;
  runEvery(MINUTE_MS, async () => {
    const { from } = lastCompletePeriod(of, Date.now());
    if (from === lastSent) return;
    await tell(await createDigest(ledger, of, Date.now()));
    lastSent = from;
  });
}
