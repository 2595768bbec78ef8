// Sends the lines of a batch that no provider runs in a batch. A line is claimed in the record before
// it is sent, so that no gateway sends it again after a crash, and its result is logged before the
// next step. A line that was claimed and has no result is reported as lost.
import {
  getFault,
  type HeadersOut,
  type JobLines,
  type LineRunResponse,
  type Price,
} from "tollgate/plugin";
import type { EventLogWriter } from "./event-log.ts";
import {
  tokensOf,
  type BatchChange,
  type BatchOutcome,
  type DirectLines,
  type StoredBatch,
  type UnsentLine,
} from "./batch-record.ts";
import { DirectLogs, type DirectResult } from "./direct-log.ts";
import { isKeyValid } from "./key-validity.ts";
import type { LineHeader } from "./batch-planner.ts";
import { readLineFile } from "./line-files.ts";
import type { EndTurn, LinePace } from "./line-pace.ts";
import { readHeaders } from "./part-headers.ts";
import { splitAllLines } from "./line-text.ts";
import type { Owner } from "./owned-records.ts";
import type { Storage } from "./storage.ts";

/** Times that a line is sent if its provider is unavailable, or limits the rate. */
export const MAX_TURNS = 12;
/** Time in milliseconds until a line is sent again: after the first turn, and at most. */
const BACKOFF_MS = { first: 1_000, most: 60_000 };
/** Number of lines that wait to be sent again. While there are more, no new line is sent. */
const MAX_WAITING = 32;
/** Time in milliseconds for which a key counts as valid. */
const KEY_CHECK_MS = 10_000;

/** A line that is to be sent. */
interface DirectLine {
  readonly n: number;
  /** Index of its part. */
  readonly part: number;
  /** Headers of the request that created the batch. */
  readonly headers: HeadersOut;
  readonly holdNano: bigint | null;
  readonly price: Price | null;
  readonly body: Buffer;
  /** Number of the next attempt to send it. */
  readonly turn: number;
  /** Time in Unix milliseconds before which it is not sent. */
  readonly at: number;
  /** Times that this run could not send it. */
  readonly tries: number;
}

/** How the lines ended. `later`: lines are left, and `run` has to be called again. */
export type DirectEnd =
  | "later"
  | { readonly outcome: BatchOutcome; readonly message?: string | undefined };

export interface DirectRunOptions {
  readonly storage: Storage;
  readonly jobLines: JobLines;
  readonly owner: Owner;
  readonly pace: LinePace;
  /** Aborts when another engine has the batch. */
  readonly signal: AbortSignal;
  /** Aborts when the client cancels the batch. */
  readonly canceled: AbortSignal;
  readonly batch: () => StoredBatch;
  /** Writes a change, and keeps the lease. */
  readonly write: (change: Omit<BatchChange, "dueAt" | "isLeased">) => Promise<void>;
}

/** The run of one batch by the engine that leased it. */
export class DirectRun {
  readonly #of: DirectRunOptions;
  readonly #lines: AsyncGenerator<DirectLine, void>;
  /** Aborts when no more lines are to be sent. */
  readonly #stopping: AbortSignal;
  readonly #running = new Set<Promise<void>>();
  /** Lines that have to be sent, and were claimed before. */
  readonly #unsent = new Map<number, UnsentLine>();
  /** Lines that are sent again later. They are unsent. */
  readonly #waiting = new Map<number, DirectLine>();
  readonly #counts: Map<number, { succeeded: number; failed: number }>;
  #log: EventLogWriter | undefined;
  /** Whether the file contains more lines. */
  #hasMore = true;
  /** Whether the record contains all unsent lines. */
  #isSaved = true;
  #wake: (() => void) | undefined;
  #failure: { readonly error: unknown } | undefined;
  #keyCheckedAt = -Infinity;

  constructor(of: DirectRunOptions) {
    this.#of = of;
    this.#stopping = AbortSignal.any([of.signal, of.canceled, of.storage.ctx.signal]);
    this.#lines = this.#readLines();
    const { batches } = of.batch();
    this.#counts = new Map(
      batches.map(({ counts }, part) => [part, { succeeded: 0, failed: 0, ...counts }]),
    );
  }

  get #direct(): DirectLines {
    return this.#of.batch().direct!;
  }

  /** Sends lines until all have ended, or until this time in Unix milliseconds. */
  async run(until: number): Promise<DirectEnd> {
    const { pace, storage } = this.#of;
    for (;;) {
      this.#throwFailure();
      const end = await this.#findEnd();
      if (end) return this.#finish(end);
      if (!this.#canSend) {
        if (await this.#hasEnded()) return this.#finish({ outcome: "completed" });
        if (!this.#isSaved) await this.#writeState();
        await this.#waitForLine(until);
        if (storage.ctx.signal.aborted || Date.now() >= until) return "later";
        continue;
      }
      const endTurn = await pace.take(this.#stopping, until);
      if (!endTurn) {
        if (storage.ctx.signal.aborted || Date.now() >= until) return "later";
        continue;
      }
      let isStarted = false;
      try {
        // The turn may have come after hours.
        if (await this.#findEnd()) continue;
        const line = this.#takeDue() ?? (await this.#readNext());
        if (!line) continue;
        await this.#claim(line);
        // The client has canceled the batch in the meantime.
        if (this.#of.batch().state === "canceling") continue;
        isStarted = true;
        this.#start(line, endTurn);
      } finally {
        if (!isStarted) endTurn();
      }
    }
  }

  /** Whether a line can be sent now, as far as is known before the next one is read. */
  get #canSend(): boolean {
    return this.#nextAt <= Date.now() || (this.#hasMore && this.#waiting.size < MAX_WAITING);
  }

  /** Time at which the next waiting line is due. */
  get #nextAt(): number {
    let next = Infinity;
    for (const { at } of this.#waiting.values()) next = Math.min(next, at);
    return next;
  }

  #takeDue(): DirectLine | undefined {
    const now = Date.now();
    for (const line of this.#waiting.values())
      if (line.at <= now) {
        this.#waiting.delete(line.n);
        return line;
      }
    return undefined;
  }

  /** Returns the next line of the file that can be sent now. */
  async #readNext(): Promise<DirectLine | undefined> {
    while (this.#waiting.size < MAX_WAITING) {
      const next = await this.#lines.next();
      if (next.done) {
        this.#hasMore = false;
        return undefined;
      }
      if (next.value.at <= Date.now()) return next.value;
      this.#waiting.set(next.value.n, next.value);
    }
    return undefined;
  }

  /** Whether all lines have a result. Waits for those that were sent if no other line is left. */
  async #hasEnded(): Promise<boolean> {
    if (this.#hasMore) return false;
    while (this.#waiting.size === 0 && this.#running.size > 0) await Promise.race(this.#running);
    return this.#waiting.size === 0;
  }

  /** Waits until a line is due, a sent one has ended, the batch expires, or lines have to stop. */
  async #waitForLine(until: number): Promise<void> {
    const stopping = this.#stopping;
    const { expiresAt } = this.#of.batch();
    const ms = Math.min(this.#nextAt, until, expiresAt + 1) - Date.now();
    if (stopping.aborted || ms <= 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    this.#wake = wake;
    const timer = setTimeout(wake, ms);
    stopping.addEventListener("abort", wake);
    await promise;
    this.#wake = undefined;
    stopping.removeEventListener("abort", wake);
    clearTimeout(timer);
  }

  /** Waits for the lines that were sent. Their results are logged. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#running);
    await this.#lines.return();
    try {
      await this.#log?.close();
    } finally {
      if (!this.#of.signal.aborted && this.#unsent.size > 0) await this.#writeState();
    }
  }

  /** Returns why no more lines are sent. */
  async #findEnd(): Promise<Exclude<DirectEnd, "later"> | undefined> {
    const { state, expiresAt } = this.#of.batch();
    if (state === "canceling") return { outcome: "canceled" };
    if (Date.now() > expiresAt) return { outcome: "expired" };
    if (await this.#isKeyValid()) return undefined;
    return { outcome: "failed", message: "The API key of this batch was revoked." };
  }

  async #isKeyValid(): Promise<boolean> {
    const { digest } = this.#direct;
    const now = Date.now();
    if (digest === undefined || now < this.#keyCheckedAt + KEY_CHECK_MS) return true;
    const isValid = await isKeyValid(this.#of.storage.ctx, digest);
    if (isValid) this.#keyCheckedAt = now;
    return isValid;
  }

  async #finish(end: Exclude<DirectEnd, "later">): Promise<DirectEnd> {
    await Promise.all(this.#running);
    this.#throwFailure();
    return end;
  }

  #throwFailure(): void {
    this.#of.signal.throwIfAborted();
    if (this.#failure) throw this.#failure.error;
  }

  /** Records that a line is sent next. No gateway sends it after that. */
  async #claim({ n, turn, at }: DirectLine): Promise<void> {
    const { storage, owner, batch } = this.#of;
    const logs = this.#direct.logs + (this.#log ? 0 : 1);
    this.#unsent.set(n, [n, turn, at]);
    await this.#writeState({ claimed: Math.max(n, this.#direct.claimed), logs, claimedNow: n });
    this.#log ??= await new DirectLogs(storage, owner, batch().record.id, this.#direct).create(
      logs,
    );
  }

  /** Writes the progress, and the lines that another run has to send. */
  async #writeState({
    claimed,
    logs,
    claimedNow,
  }: { claimed?: number; logs?: number; claimedNow?: number } = {}): Promise<void> {
    const { batch, write } = this.#of;
    const before = this.#direct;
    const all = new Map([
      ...(before.unsent ?? []).map((line) => [line[0], line] as const),
      ...this.#unsent,
    ]);
    const unsent = [...all.values()].filter(([n]) => n !== claimedNow);
    this.#isSaved = true;
    const direct = {
      ...before,
      claimed: claimed ?? before.claimed,
      logs: logs ?? before.logs,
      unsent,
    };
    const batches = batch().batches.map((part, index) =>
      part.target.isDirect ? { ...part, counts: { ...this.#counts.get(index)! } } : part,
    );
    await write({ data: { direct, batches } });
  }

  #start(line: DirectLine, endTurn: EndTurn): void {
    this.#unsent.delete(line.n);
    const work: Promise<void> = this.#send(line)
      .catch((error: unknown) => void (this.#failure ??= { error }))
      .finally(() => {
        this.#running.delete(work);
        endTurn();
        this.#wake?.();
      });
    this.#running.add(work);
  }

  async #send(line: DirectLine): Promise<void> {
    const result = await this.#resultOf(line);
    if (!result) return;
    await this.#log!.append(JSON.stringify(result));
    await this.#log!.flush();
    const isFailed = "fault" in result || result.status >= 400;
    this.#counts.get(line.part)![isFailed ? "failed" : "succeeded"]++;
  }

  /** Returns the result of a line. Undefined if it has none: it is unknown, or comes later. */
  async #resultOf(line: DirectLine): Promise<DirectResult | undefined> {
    const { jobLines, batch, signal, storage } = this.#of;
    const { record, path, labels, account, batches } = batch();
    const { n, part, headers, holdNano, price, body, turn } = line;
    try {
      const response = await jobLines.runLine(
        { path, body },
        {
          attempt: record.attempt!,
          line: n,
          target: { ...batches[part]!.target, headers },
          key: record.key,
          account,
          labels,
          holdNano,
          pricedAt: record.createdAt,
          price: price ?? undefined,
          turn,
          signal,
          stopping: storage.ctx.signal,
        },
      );
      if (response) return resultOf(n, response);
      this.#sendLater(line, turn, 0);
      return undefined;
    } catch (error) {
      const fault = getFault(error);
      if (signal.aborted) throw error;
      if (!fault || fault.kind === "canceled") {
        storage.ctx.log.warn({ batch: record.id, line: n, err: error }, "batch line lost");
        return undefined;
      }
      const { kind, message, code, param, retryAfterMs = 0 } = fault;
      if (turn >= MAX_TURNS) return { n, fault: { kind, message, code, param } };
      this.#sendLater(line, turn + 1, retryAfterMs);
      return undefined;
    }
  }

  /** Sends a line again after a while. It keeps no place among the lines that run. */
  #sendLater(line: DirectLine, turn: number, leastMs: number): void {
    const { n, tries } = line;
    const backoffMs = Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** tries);
    const at = Date.now() + Math.max(backoffMs, leastMs);
    this.#waiting.set(n, { ...line, turn, at, tries: tries + 1 });
    this.#unsent.set(n, [n, turn, at]);
    this.#isSaved = false;
  }

  /** Yields the lines that no gateway has sent, in their order. */
  async *#readLines(): AsyncGenerator<DirectLine, void> {
    const { storage, owner, batch } = this.#of;
    const { lines, batches, direct } = batch();
    const { claimed, unsent = [] } = direct!;
    const open = new Map(unsent.map((line) => [line[0], line]));
    const prices = new Map<number, Price | null>();
    const headers = new Map<number, HeadersOut>();
    let header: LineHeader | undefined;
    for await (const text of splitAllLines(await readLineFile(storage, owner, lines))) {
      if (!header) {
        header = JSON.parse(text.toString()) as LineHeader;
        continue;
      }
      const { n, batch: part, price, holdNano } = header;
      header = undefined;
      if (part === undefined || !batches[part]!.target.isDirect) continue;
      if (price !== undefined) prices.set(part, price);
      if (n <= claimed && !open.has(n)) continue;
      const [, turn, at] = open.get(n) ?? [n, 1, 0];
      if (!headers.has(part))
        headers.set(part, await readHeaders(storage, owner, batches[part]!.input));
      yield {
        n,
        part,
        headers: headers.get(part)!,
        holdNano: holdNano == null ? null : BigInt(holdNano),
        price: prices.get(part) ?? null,
        body: text,
        turn,
        at,
        tries: turn - 1,
      };
    }
  }
}

const resultOf = (n: number, { status, requestId, body, call, costNano }: LineRunResponse) => ({
  n,
  status,
  requestId,
  body,
  usage: tokensOf(call?.usage ?? {}),
  costNano: costNano.toString(),
});
