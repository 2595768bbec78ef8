// A response that this process runs. Its events are written to its log, and its lease is renewed
// until it ends.
import type { BackgroundEnd, BackgroundRun, JsonObject, RouteResponse } from "tollgate/plugin";
import type { EventLogWriter, LogPosition } from "../jobs/event-log.ts";
import { isVersionConflict } from "../jobs/stored-jobs.ts";
import { failedLine, failedResponse, numberEvent } from "./response-events.ts";
import {
  isFinal,
  type ResponseChange,
  type ResponseRecords,
  type ResponseState,
  type StoredResponse,
} from "./response-record.ts";

/** Length of a lease in milliseconds. */
export const LEASE_MS = 60_000;
/** Time between two renewals in milliseconds. It bounds the delay of a cancellation elsewhere. */
const RENEW_MS = 10_000;
/** Times that the end of a response is written if the store does not answer, every second. */
const END_TRIES = 20;

/** A response that was just created, with its log. */
export interface OpenResponse {
  readonly stored: StoredResponse;
  readonly log: EventLogWriter;
  /** The response before its first event. */
  readonly base: JsonObject;
  readonly answer: RouteResponse;
}

export interface RunOptions {
  readonly records: ResponseRecords;
  /** Maximum size of all events, in bytes. */
  readonly maxBytes: number;
  /** How long a response is kept after it has ended, in milliseconds. */
  readonly keepMs: number;
  /** Creates the record and the log. */
  create(run: ActiveRun): Promise<OpenResponse>;
  /** Whether the key of the client is still valid. */
  isKeyValid(): Promise<boolean>;
  /** Called when the response has ended, and its record was written. */
  onEnded(id: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

export class ActiveRun implements BackgroundRun {
  readonly #of: RunOptions;
  readonly #aborter = new AbortController();
  readonly #waiting = new Set<() => void>();
  readonly ended: Promise<void>;
  #markEnded: () => void = () => {};
  #open: OpenResponse | undefined;
  #renewal: NodeJS.Timeout | undefined;
  #writing: Promise<unknown> = Promise.resolve();
  #isCanceled = false;
  /** Message for the client, if the gateway stopped the response. */
  #problem: string | undefined;
  #changes = 0;
  #bytes = 0;
  #events = 0;
  #last: LogPosition | undefined;
  #endState: ResponseState | undefined;
  #upstreamId: string | undefined;
  isEnded = false;

  constructor(of: RunOptions) {
    this.#of = of;
    this.ended = new Promise((resolve) => (this.#markEnded = resolve));
  }

  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  /** Number of changes of the log and the state. */
  get changes(): number {
    return this.#changes;
  }

  /** Resolves when there are more changes than `seen`, or after this time. */
  async whenChanged(seen: number, ms: number): Promise<void> {
    if (this.#changes !== seen) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.#waiting.add(wake);
    });
  }

  onWritten = (): void => {
    this.#changes++;
    for (const wake of this.#waiting) wake();
  };

  cancel(): void {
    this.#isCanceled = true;
    this.#aborter.abort();
  }

  async accept(): Promise<RouteResponse> {
    this.#open = await this.#of.create(this);
    this.#renewal = setInterval(() => void this.#renew(), RENEW_MS).unref();
    return this.#open.answer;
  }

  async onEvent(data: string): Promise<void> {
    const { log, stored } = this.#open!;
    this.#bytes += data.length;
    if (this.#bytes > this.#of.maxBytes) {
      this.#problem ??= `The response is larger than ${this.#of.maxBytes} bytes, the maximum for background responses.`;
      return this.#aborter.abort();
    }
    const event = numberEvent(data, `resp_${stored.record.id}`, this.#events);
    this.#upstreamId ??= event.upstreamId;
    this.#events++;
    if (event.endsAs === undefined) return log.append(event.line);
    this.#endState = event.endsAs;
    this.#last = await log.appendAlone(event.line);
    return undefined;
  }

  async onEnd(end: BackgroundEnd): Promise<void> {
    clearInterval(this.#renewal);
    const { stored } = this.#open!;
    try {
      const state = await this.#writeEnd(end);
      await this.#writing;
      const { bytes } = this.#open!.log;
      const reason = state === "failed" && !this.#last ? ("storage" as const) : undefined;
      const data = { last: this.#last, upstreamId: this.#upstreamId, bytes, reason };
      await this.#writeFinal({ state, data });
    } catch (err) {
      this.#of.warn({ response: stored.record.id, err }, "background response not stored");
    } finally {
      this.isEnded = true;
      this.#of.onEnded(stored.record.id);
      this.#markEnded();
      this.onWritten();
    }
  }

  /** Completes the log, and returns the final state. */
  async #writeEnd({ isTruncated, error }: BackgroundEnd): Promise<ResponseState> {
    const { log, base } = this.#open!;
    try {
      let state = this.#endState;
      if (state === undefined && this.#isCanceled) state = "canceled";
      if (state === undefined) {
        const message = this.#problem ?? messageOf(error) ?? endMessage(isTruncated);
        const failed = failedLine(failedResponse(base, message), this.#events);
        this.#last = await log.appendAlone(failed);
        state = "failed";
      }
      await log.close();
      return state;
    } catch (err) {
      this.#of.warn({ err }, "log of a background response not written");
      this.#last = undefined;
      await log.close().catch(() => undefined);
      return "failed";
    }
  }

  /** Extends the lease, and ends the response if it was canceled, deleted, or lost its key. */
  async #renew(): Promise<void> {
    const renewing = this.#writing.then(async () => {
      if (this.#aborter.signal.aborted) return;
      if (!(await this.#of.isKeyValid())) {
        this.#problem ??= "The API key of this response was revoked.";
        return this.#aborter.abort();
      }
      await this.#write({ dueAt: Date.now() + LEASE_MS });
    });
    this.#writing = renewing.catch((err: unknown) => {
      if (isVersionConflict(err)) return this.cancel();
      // The store does not answer. The lease stays valid until its end.
      return this.#of.warn({ err }, "lease of a background response not renewed");
    });
    await this.#writing;
  }

  async #writeFinal(change: Omit<ResponseChange, "dueAt">): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#write({ ...change, dueAt: Date.now() + this.#of.keepMs });
      } catch (error) {
        if (isVersionConflict(error) || tries === END_TRIES) throw error;
        await new Promise((resolve) => setTimeout(resolve, 1_000).unref());
      }
    }
  }

  /**
   * Writes a change. Another process may have requested the cancellation in the meantime. Rejects if
   * the response was deleted, or another process ended it.
   */
  async #write(change: ResponseChange): Promise<void> {
    const { records } = this.#of;
    const open = this.#open!;
    const set = (stored: StoredResponse) => void (this.#open = { ...open, stored });
    try {
      set(await records.change(open.stored, change));
    } catch (error) {
      if (!isVersionConflict(error)) throw error;
      const { record } = open.stored;
      const found = await records.read(record.id);
      if (!found || isFinal(found.state) || found.record.owner !== record.owner) throw error;
      if (found.cancelRequestedAt !== undefined && !this.isEnded) this.cancel();
      set(await records.change(found, change));
    }
  }
}

const endMessage = (isTruncated: boolean): string =>
  isTruncated
    ? "The gateway stopped before the response was complete."
    : "The response ended before it was complete.";

/** Returns the message of an error response. */
function messageOf(error: BackgroundEnd["error"]): string | undefined {
  if (!error) return undefined;
  try {
    const { error: inner } = JSON.parse(error.body) as { readonly error?: JsonObject };
    if (typeof inner?.["message"] === "string") return inner["message"];
  } catch {
    // The error is not JSON.
  }
  return `The request failed with status ${error.status}.`;
}
