// Polls responses that providers run until they have ended, and bills each of them once. Each process
// of a gateway has an engine. An engine leases a response for one step, so another gateway continues
// where one stopped.
import {
  fail,
  getFault,
  type BackgroundStatus,
  type Context,
  type JobLines,
  type JsonObject,
  type LineResponse,
  type OpenBackground,
} from "tollgate/plugin";
import { isKeyValid } from "../jobs/key-validity.ts";
import { LeaseLoop, backoffMs, nextPollMs } from "../jobs/lease-loop.ts";
import { isVersionConflict, toRecordMessage } from "../jobs/stored-jobs.ts";
import { PREFIX } from "./background-service.ts";
import {
  isOpen,
  ownerOfRecord,
  parseProviderResponse,
  requestFileOf,
  type FinalState,
  type ProviderResponse,
  type ProviderResponseChange,
  type ProviderResponseRecords,
  type ResponseEnd,
  type ResponseResult,
} from "./provider-response-record.ts";
import { replayEvents } from "./replay-events.ts";
import { failedResponse, numberEvent } from "./response-events.ts";
import type { ResponseFiles } from "./response-files.ts";
import { PROVIDER_RESPONSE_KIND } from "./response-record.ts";

/** Length of a lease in milliseconds. A step takes less time. */
const LEASE_MS = 60_000;
/** Maximum time of one step in milliseconds. */
const STEP_MS = 45_000;
/**
 * Time between two polls in milliseconds: at first, and at most. OpenAI keeps a response for about
 * 10 minutes after it has ended.
 */
const POLL_MS = { first: 200, most: 10_000 };
/** Time in milliseconds within which a response has to end. */
const WINDOW_MS = 24 * 3_600_000;
/** Number of responses whose steps one engine takes at the same time. */
const CONCURRENT_STEPS = 8;
/** Number of attempts to delete a response at the provider. */
const DELETE_TRIES = 8;

export interface ProviderEngineOptions {
  readonly records: ProviderResponseRecords;
  readonly files: ResponseFiles;
  /** How long a response that has ended is kept, in milliseconds. */
  readonly keepMs: number;
}

export class ProviderResponseEngine {
  readonly #ctx: Context;
  readonly #of: ProviderEngineOptions;
  readonly #loop: LeaseLoop;
  /** Looks for work now. */
  readonly wake: () => void;

  constructor(ctx: Context, of: ProviderEngineOptions) {
    this.#ctx = ctx;
    this.#of = of;
    this.#loop = new LeaseLoop({
      ctx,
      jobs: () => ctx.jobs!,
      kind: PROVIDER_RESPONSE_KIND,
      leaseMs: LEASE_MS,
      concurrent: CONCURRENT_STEPS,
      run: async (record) => this.#takeStep(parseProviderResponse(record)),
      onPaused: (err) => ctx.log.warn({ err }, "response engine paused, will retry"),
    });
    this.wake = () => this.#loop.wake();
  }

  /** Starts after the gateway has started. */
  start(): void {
    this.#loop.start();
  }

  async #takeStep(leased: ProviderResponse): Promise<void> {
    const step = new ResponseStep(this.#ctx, this.#of, leased);
    try {
      await step.run();
    } catch (err) {
      if (!isVersionConflict(err)) await step.postpone(err);
    }
  }
}

/** One step of a response, by the engine that leased it. */
class ResponseStep {
  readonly #ctx: Context;
  readonly #jobLines: JobLines;
  readonly #of: ProviderEngineOptions;
  readonly #signal: AbortSignal;
  #response: ProviderResponse;

  constructor(ctx: Context, of: ProviderEngineOptions, response: ProviderResponse) {
    this.#ctx = ctx;
    this.#jobLines = ctx.jobLines!;
    this.#of = of;
    this.#response = response;
    this.#signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(STEP_MS)]);
  }

  async run(): Promise<void> {
    const { state } = this.#response;
    if (!isOpen(state)) return this.#erase();
    if (state === "reserving") return this.#abandon();
    // The process that created the response stopped before it stored the provider's answer.
    if (state === "submitting") return this.#end(ENDS.lost);
    if (state === "settling") return this.#settleEnd();
    return this.#poll();
  }

  get #isOverdue(): boolean {
    return Date.now() >= this.#response.record.createdAt + WINDOW_MS;
  }

  get #reference(): string {
    const { record, reference } = this.#response;
    const owner = ownerOfRecord(this.#response).name;
    const { secrets } = this.#of.files;
    return secrets.unwrapKey(owner, `${record.id}.reference`, reference!).toString();
  }

  async #poll(): Promise<void> {
    const { target } = this.#response;
    const opened = this.#jobLines.openBackground(target, this.#signal);
    if (!opened)
      return this.#isOverdue
        ? this.#end(ENDS.lost)
        : // Another gateway may have the provider in its config.
          fail("unavailable", `The provider ${target.provider} is not in this gateway's config.`);
    let status: BackgroundStatus;
    try {
      await this.#cancelIfRequested(opened);
      status = await opened.background.poll(this.#reference, opened.client);
    } catch (error) {
      if (getFault(error)?.kind === "not_found") return this.#end(ENDS.deleted);
      if (this.#isOverdue && !this.#ctx.signal.aborted) return this.#end(ENDS.expired);
      throw error;
    }
    const { state } = status;
    if (state !== "queued" && state !== "running") return this.#endWith(status);
    if (!this.#isOverdue) return this.#pollLater({ isQueued: state === "queued" });
    await opened.background.cancel(this.#reference, opened.client).catch(() => undefined);
    return this.#end(ENDS.expired);
  }

  /** Cancels a response that its client has canceled, or whose key was revoked. */
  async #cancelIfRequested({ background, client }: OpenBackground): Promise<void> {
    const { cancelRequestedAt, digest } = this.#response;
    if (cancelRequestedAt === undefined) {
      if (await isKeyValid(this.#ctx, digest)) return;
      const cancelReason = "The API key of this response was revoked.";
      const data = { cancelRequestedAt: Date.now(), cancelReason };
      await this.#write({ data, dueAt: Date.now() + LEASE_MS, isLeased: true });
    }
    await background.cancel(this.#reference, client);
  }

  #pollLater(data: ProviderResponseChange["data"] = {}): Promise<void> {
    const { pollMs = POLL_MS.first } = this.#response;
    const next = nextPollMs(pollMs, POLL_MS.most);
    return this.#write({
      data: { ...data, failures: 0, pollMs: next },
      dueAt: Date.now() + pollMs,
    });
  }

  /** Ends a response that the provider has ended. */
  async #endWith(status: BackgroundStatus): Promise<void> {
    const { state, response, hasUsage = true, message } = status;
    const { cancelReason, record } = this.#response;
    if (response && (state === "completed" || hasUsage)) {
      // Only a gateway that has the request can process the response to it.
      if (await this.#of.files.exists(requestFileOf(record.id)))
        return this.#settleResponse(status);
      return this.#isOverdue ? this.#end(ENDS.lost) : this.#pollLater();
    }
    if (state === "canceled" && cancelReason === undefined) return this.#end(ENDS.canceled);
    if (state === "canceled")
      return this.#end({ ...ENDS.canceled, state: "failed", message: cancelReason! });
    return this.#end({
      state: "failed",
      isEstimated: state !== "failed",
      message: toRecordMessage(message ?? "The provider could not generate the response."),
    });
  }

  /** Bills a response by its usage, and stores its events. Repeating it bills nothing again. */
  async #settleResponse(status: BackgroundStatus): Promise<void> {
    const { record, path, target, account, labels, price, pricedAt, holdNano } = this.#response;
    const { base, body } = await this.#readRequest();
    const answer = await this.#jobLines.settleLine(
      { path, body },
      { id: "1", outcome: "answered", status: 200, body: status.response },
      {
        attempt: record.attempt!,
        line: 1,
        target,
        key: record.key,
        account,
        labels,
        holdNano: holdNano === null ? null : BigInt(holdNano),
        pricedAt,
        price,
        stopping: this.#ctx.signal,
        isLastAttempt: this.#isOverdue,
      },
    );
    await this.#jobLines.settleJob(record.attempt!, { costNano: 0n, outcome: "ok" });
    const { cancelReason } = this.#response;
    const isCanceled = status.state === "canceled" && cancelReason === undefined;
    const costNano = answer.call?.costNano?.toString();
    if (isCanceled) return this.#writeFinal("canceled", { costNano });
    const { state, response } = readAnswer(answer, base, cancelReason);
    const result = await this.#writeResult(response);
    const end = state === "failed" ? { end: failureOf(response) } : {};
    return this.#writeFinal(state, { result, costNano, ...end });
  }

  async #readRequest(): Promise<{ readonly base: JsonObject; readonly body: Buffer }> {
    const { record, key, requestKey } = this.#response;
    const base = await this.#readFile(record.id, key);
    const body = await this.#readFile(requestFileOf(record.id), requestKey);
    return { base: JSON.parse(base) as JsonObject, body: Buffer.from(body) };
  }

  async #readFile(name: string, key: string): Promise<string> {
    const log = await this.#of.files.open(ownerOfRecord(this.#response), name, key);
    try {
      const [text] = (await log.next()) ?? [];
      return text ?? fail("internal", "A file of a background response is truncated.");
    } finally {
      await log.close();
    }
  }

  /** Writes the events of a response to a file that no other step writes. */
  async #writeResult(response: JsonObject): Promise<ResponseResult> {
    const { id, version } = this.#response.record;
    const file = `${id}.${version}`;
    await this.#of.files.delete(file);
    const { log, key } = await this.#of.files.create(ownerOfRecord(this.#response), file);
    try {
      const events = replayEvents(response);
      const lines = events.map(
        (event, n) => numberEvent(JSON.stringify(event), `${PREFIX}_${id}`, n).line,
      );
      for (const line of lines.slice(0, -1)) await log.append(line);
      const last = await log.appendAlone(lines.at(-1)!);
      await log.close();
      return { file, key, last, bytes: log.bytes };
    } catch (error) {
      await log.close().catch(() => undefined);
      await this.#of.files.delete(file);
      throw error;
    }
  }

  /** Stores how the response ended before it is billed, so that every attempt bills the same. */
  async #end(end: ResponseEnd): Promise<void> {
    const dueAt = Date.now() + LEASE_MS;
    await this.#write({
      state: "settling",
      data: { end, failures: 0 },
      dueAt,
      isLeased: true,
    });
    await this.#settleEnd();
  }

  async #settleEnd(): Promise<void> {
    const { record, end, holdNano } = this.#response;
    const { state, isEstimated } = end!;
    const attempt = record.attempt!;
    // An earlier step may have billed a result that cannot be read any more.
    const line = `${attempt}.1.1`;
    const { items } = await this.#ctx.ledger.listEntries({ attempt: line }, { limit: 2 });
    let billed = items.find(({ kind }) => kind !== "reserve")?.costNano;
    if (billed === undefined && items.length > 0) {
      // An earlier step reserved the call, and did not bill it.
      billed = BigInt(holdNano ?? "0");
      await this.#jobLines.settleJob(line, { costNano: billed, outcome: state });
    }
    const costNano = isEstimated && items.length === 0 ? BigInt(holdNano ?? "0") : 0n;
    await this.#jobLines.settleJob(attempt, { costNano, outcome: state });
    return this.#writeFinal(state, { costNano: (costNano + (billed ?? 0n)).toString() });
  }

  async #writeFinal(state: FinalState, data: ProviderResponseChange["data"]): Promise<void> {
    const endedAt = Date.now();
    const dueAt = this.#response.isDeleted ? endedAt : endedAt + this.#of.keepMs;
    await this.#write({ state, data: { ...data, endedAt, failures: 0 }, dueAt });
    await this.#of.files.delete(requestFileOf(this.#response.record.id));
  }

  /** Ends a response whose creation was interrupted. Its client did not receive its ID. */
  async #abandon(): Promise<void> {
    await releaseReservation(this.#jobLines, this.#response, "canceled");
    await this.#of.records.delete(this.#response);
    await this.#deleteFiles();
  }

  async #deleteFiles(): Promise<void> {
    const { record, result } = this.#response;
    for (const name of [record.id, requestFileOf(record.id), result?.file])
      if (name !== undefined) await this.#of.files.delete(name);
  }

  /** Deletes a response that its client deleted, or whose time has ended. */
  async #erase(): Promise<void> {
    const { isDeleted, reference, target, failures = 0 } = this.#response;
    const opened =
      isDeleted && reference !== undefined && failures < DELETE_TRIES
        ? this.#jobLines.openBackground(target, this.#signal)
        : undefined;
    try {
      if (opened) await opened.background.delete?.(this.#reference, opened.client);
    } catch (error) {
      if (getFault(error)?.kind !== "not_found") throw error;
    }
    await this.#of.records.delete(this.#response);
    await this.#deleteFiles();
  }

  /** Postpones the response after an error. */
  async postpone(err: unknown): Promise<void> {
    const { failures = 0, record } = this.#response;
    if (this.#ctx.signal.aborted) return this.#write({ dueAt: Date.now() }).catch(() => undefined);
    const fault = getFault(err);
    const ms = backoffMs(failures, 60_000);
    this.#ctx.log.warn(
      { response: record.id, state: record.state, retryInMs: ms, err: fault?.message ?? err },
      "response step failed, will retry",
    );
    const later = Date.now() + Math.max(ms, Math.min(fault?.retryAfterMs ?? 0, 5 * 60_000));
    await this.#write({ data: { failures: failures + 1 }, dueAt: later }).catch(() => undefined);
  }

  /**
   * Writes a change. A client may have canceled or deleted the response in the meantime. Rejects if
   * another engine has leased it.
   */
  async #write(change: ProviderResponseChange): Promise<void> {
    const { records } = this.#of;
    for (;;) {
      try {
        this.#response = await records.change(this.#response, change);
        return;
      } catch (error) {
        const { record, cancelRequestedAt, isDeleted } = this.#response;
        const found = isVersionConflict(error) ? await records.read(record.id) : undefined;
        if (!found || record.owner == null || found.record.owner !== record.owner) throw error;
        this.#response = found;
        const isNew =
          found.cancelRequestedAt !== cancelRequestedAt || found.isDeleted !== isDeleted;
        const isDue = isOpen(change.state ?? found.state) || found.isDeleted;
        if (isNew && isDue && !change.isLeased) change = { ...change, dueAt: Date.now() };
      }
    }
  }
}

/** Ends without a result. */
const ENDS = {
  canceled: { state: "canceled", isEstimated: true, message: "The response was canceled." },
  expired: {
    state: "expired",
    isEstimated: true,
    message: "The response was not complete within 24 hours.",
  },
  deleted: {
    state: "deleted",
    isEstimated: true,
    message: "The provider does not have the response any more.",
  },
  lost: {
    state: "lost",
    isEstimated: true,
    message: "Cannot determine whether the provider ran the response.",
  },
} satisfies Record<string, ResponseEnd>;

/** Releases the reservation of a response that was not started. */
export async function releaseReservation(
  jobLines: JobLines,
  { record }: ProviderResponse,
  outcome: string,
): Promise<void> {
  await jobLines.settleJob(record.attempt!, { costNano: 0n, outcome }).catch((error: unknown) => {
    // It was not reserved.
    if (getFault(error)?.code !== "unknown_attempt") throw error;
  });
}

/** Returns the response for the client. An error is a response that failed. */
function readAnswer(
  { status, body }: LineResponse,
  base: JsonObject,
  cancelReason: string | undefined,
): { readonly state: FinalState; readonly response: JsonObject } {
  const answer = JSON.parse(body) as JsonObject;
  if (status >= 400 || cancelReason !== undefined) {
    const { message } = (answer["error"] ?? {}) as JsonObject;
    const text = cancelReason ?? (typeof message === "string" ? message : `Status ${status}.`);
    return { state: "failed", response: failedResponse(base, text) };
  }
  const state = answer["status"] === "incomplete" ? "incomplete" : "completed";
  const own = {
    model: base["model"] ?? null,
    previous_response_id: base["previous_response_id"] ?? null,
  };
  return { state, response: { ...answer, ...own, store: true } };
}

const failureOf = (response: JsonObject): ResponseEnd => ({
  state: "failed",
  isEstimated: false,
  message: toRecordMessage(String((response["error"] as JsonObject)["message"])),
});
