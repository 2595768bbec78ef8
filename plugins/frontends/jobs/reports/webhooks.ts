// Reports the end of jobs to clients by webhooks. A delivery is a record in the store, which is
// written before the end of the job. Any gateway on the store delivers it, so none is lost.
import { createHash } from "node:crypto";
import {
  createWebhookHeaders,
  parseWebhookSecret,
  type Context,
  type EndedJob,
  type JobRecord,
  type JobStore,
} from "tollgate/plugin";
import { LeaseLoop } from "../lease-loop.ts";
import { isVersionConflict } from "../stored-jobs.ts";

const KIND = "webhook";
/** Length of a lease in milliseconds. It is longer than a delivery. */
const LEASE_MS = 60_000;
const TIMEOUT_MS = 15_000;
/** Delay in milliseconds before a delivery is repeated: at first, and at most. */
const RETRY_MS = { first: 5_000, most: 3_600_000 };
/** Delay of a first delivery in milliseconds, in which the end of the job is usually written. */
const FIRST_DELAY_MS = 50;
/** Shortest delay in milliseconds until a job is read again whose end is not written. */
const UNWRITTEN_MS = 1_000;
/** Time in milliseconds after which a delivery ends without success. */
const GIVE_UP_MS = 3 * 24 * 3_600_000;
/** Number of deliveries that one gateway makes at the same time. */
const CONCURRENT_DELIVERIES = 8;
const GONE = 410;

/** A receiver of webhooks, as gateway.yaml describes it. */
export interface WebhookOptions {
  readonly url: string;
  readonly secret: string;
  readonly events?: readonly string[] | undefined;
  readonly accounts?: readonly string[] | undefined;
  readonly keys?: readonly string[] | undefined;
}

/** Data of the record of a delivery. It contains no URL, because a URL may contain a secret. */
interface DeliveryData {
  /** Hash of the receiver's URL. */
  readonly receiver: string;
  /** ID of the job, as clients see it. */
  readonly job: string;
  /** Record of the job, and its final state. */
  readonly record: string;
  readonly state: string;
  /** Type of the event, such as `batch.completed`. */
  readonly event: string;
  readonly endedAt: number;
  readonly attempts: number;
}

const hash = (...parts: readonly string[]): string =>
  createHash("sha256").update(parts.join("\0")).digest("base64url").slice(0, 32);

/** Whether a pattern such as "batch.*" matches the event. */
const matchesEvent = (pattern: string, event: string): boolean =>
  pattern.endsWith("*") ? event.startsWith(pattern.slice(0, -1)) : pattern === event;

/** Whether the receiver gets the event of this job. */
export function isReceiver(
  { events, accounts, keys }: WebhookOptions,
  { key, account, event }: Pick<EndedJob, "key" | "account" | "event">,
): boolean {
  const names = account?.split("/") ?? [];
  return (
    event != null &&
    (events?.some((pattern) => matchesEvent(pattern, event)) ?? true) &&
    (accounts?.some((name) => names.includes(name) || name === account) ?? true) &&
    (keys?.includes(key) ?? true)
  );
}

/** Returns the body of an event, in OpenAI's format. */
export const encodeEvent = (id: string, { event, endedAt, job }: DeliveryData): string =>
  JSON.stringify({
    id: `evt_${id}`,
    object: "event",
    created_at: Math.floor(endedAt / 1_000),
    type: event,
    data: { id: job },
  });

export class Webhooks {
  readonly #ctx: Context;
  readonly #receivers: ReadonlyMap<string, WebhookOptions>;
  readonly #loop: LeaseLoop;

  constructor(ctx: Context, receivers: readonly WebhookOptions[]) {
    this.#ctx = ctx;
    this.#receivers = new Map(receivers.map((one) => [hash(one.url), one]));
    this.#loop = new LeaseLoop({
      ctx,
      jobs: () => this.#jobs,
      kind: KIND,
      leaseMs: LEASE_MS,
      concurrent: CONCURRENT_DELIVERIES,
      run: (record) =>
        this.#deliver(record).catch((err: unknown) =>
          ctx.log.warn({ err }, "webhook not delivered, will retry"),
        ),
      onPaused: (err) => ctx.log.warn({ err }, "webhooks paused, will retry"),
    });
  }

  get #jobs(): JobStore {
    return this.#ctx.jobs!;
  }

  /** Starts to deliver. Nothing happens if there is no receiver. */
  start(): void {
    if (this.#receivers.size > 0) this.#loop.start();
  }

  /** Stores a delivery for each receiver of the job's event. It may be called again. */
  async announce(job: EndedJob): Promise<void> {
    for (const [receiver, options] of this.#receivers)
      if (isReceiver(options, job)) {
        await this.#store(receiver, job);
        this.#loop.wake(Date.now() + UNWRITTEN_MS);
      }
  }

  async #store(receiver: string, job: EndedJob): Promise<void> {
    const id = hash(KIND, job.kind, job.record, receiver);
    const data: DeliveryData = {
      receiver,
      job: job.id,
      record: job.record,
      state: job.state,
      event: job.event!,
      endedAt: job.endedAt ?? Date.now(),
      attempts: 0,
    };
    const { key, account } = job;
    const stored = await this.#jobs.find(id);
    // A gateway delivers it now.
    if (
      stored?.owner !== undefined &&
      (JSON.parse(stored!.data) as DeliveryData).event === data.event
    )
      return;
    await this.#jobs
      .put({
        id,
        kind: KIND,
        key,
        account,
        version: (stored?.version ?? 0) + 1,
        createdAt: stored?.createdAt ?? Date.now(),
        state: "pending",
        dueAt: Date.now() + FIRST_DELAY_MS,
        data: JSON.stringify(data),
      })
      .catch((error: unknown) => {
        // Another gateway has stored it.
        if (!isVersionConflict(error)) throw error;
      });
  }

  async #deliver(record: JobRecord): Promise<void> {
    const data = JSON.parse(record.data) as DeliveryData;
    const receiver = this.#receivers.get(data.receiver);
    const job = await this.#jobs.find(data.record);
    // The receiver was removed from gateway.yaml, or the client deleted the job.
    if (!receiver || !job) return this.#jobs.delete(record.id, record.version);
    const isLate = Date.now() > record.createdAt + GIVE_UP_MS;
    if (job.state !== data.state)
      return isLate
        ? this.#jobs.delete(record.id, record.version)
        : this.#repeat(record, data, UNWRITTEN_MS);
    const reason = await this.#send(record.id, receiver, data);
    if (reason === undefined) return this.#jobs.delete(record.id, record.version);
    const fields = { job: data.job, event: data.event, attempts: data.attempts + 1, reason };
    if (reason === GONE || isLate) {
      this.#ctx.log.error(fields, "webhook dropped");
      return this.#jobs.delete(record.id, record.version);
    }
    if (data.attempts === 0) this.#ctx.log.warn(fields, "webhook not accepted, will retry");
    return this.#repeat(record, data, RETRY_MS.first);
  }

  /** Postpones a delivery, with delays that double. */
  #repeat(record: JobRecord, data: DeliveryData, firstMs: number): Promise<void> {
    const ms = Math.min(RETRY_MS.most, firstMs * 2 ** Math.min(data.attempts, 20));
    const attempts = data.attempts + 1;
    return this.#postpone(record, { ...data, attempts }, ms * (0.75 + Math.random() * 0.5));
  }

  #postpone(record: JobRecord, data: DeliveryData, ms: number): Promise<void> {
    return this.#jobs.put({
      ...record,
      version: record.version + 1,
      owner: undefined,
      dueAt: Date.now() + ms,
      data: JSON.stringify(data),
    });
  }

  /** Sends an event. Returns undefined if it was accepted, and otherwise the reason of the failure. */
  async #send(
    id: string,
    { url, secret }: WebhookOptions,
    data: DeliveryData,
  ): Promise<string | number | undefined> {
    const body = encodeEvent(id, data);
    try {
      const response = await this.#ctx.fetch(url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "user-agent": "tollgate-webhooks",
          ...createWebhookHeaders(`wh_${id}`, body, parseWebhookSecret(secret), Date.now()),
        },
        body,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.body?.cancel();
      // Redirects are not followed and count as failures.
      return response.ok ? undefined : response.status;
    } catch (error) {
      // The message may contain the URL, which may contain a secret.
      return (error as { code?: string }).code ?? "unreachable";
    }
  }
}
