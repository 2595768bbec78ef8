// Responses that run in the background, as their clients use them.
import { randomBytes } from "node:crypto";
import {
  fail,
  type BackgroundRun,
  type Body,
  type Context,
  type Json,
  type JsonObject,
  type RequestHead,
  type RouteInput,
  type RouteResponse,
} from "tollgate/plugin";
import { createQueuedResponse, failResponse } from "tollgate/protocols/responses";
import type { EventLogReader } from "../jobs/event-log.ts";
import { isKeyValid } from "../jobs/key-validity.ts";
import { ownerNameOf, ownerOf, type Owner } from "../jobs/owned-records.ts";
import { isVersionConflict } from "../jobs/stored-jobs.ts";
import { ActiveRun, LEASE_MS, type OpenResponse } from "./background-run.ts";
import {
  encodeLineForClient,
  failedLine,
  failedResponse,
  responseOf,
  type EventLine,
} from "./response-events.ts";
import type { ResponseFiles } from "./response-files.ts";
import {
  isFinal,
  ResponseRecords,
  type FailureReason,
  type StoredResponse,
} from "./response-record.ts";
import { PING, PING_MS, readStartingAfter, type ResponseStreams } from "./response-streams.ts";

/** Prefix of IDs. */
export const PREFIX = "resp";
/** Time between two searches for expired responses, in milliseconds. */
const SWEEP_MS = 30_000;
/** Age in milliseconds after which a log without a record is deleted. A crash can leave one. */
const ORPHAN_MS = 24 * 3_600_000;
/** Time between two reads of a log that another process writes, in milliseconds. */
const POLL_MS = 250;
/** Number of such reads between two reads of the record. */
const POLLS_PER_RECORD = 4;
/** Time in milliseconds to wait for a cancellation in another process. */
export const CANCEL_WAIT_MS = 15_000;

export const FAILURES: Readonly<Record<FailureReason, string>> = {
  gateway_stopped: "The gateway that ran this response stopped before it was complete.",
  storage: "The response could not be stored.",
};

export interface BackgroundOptions {
  readonly files: ResponseFiles;
  readonly streams: ResponseStreams;
  readonly keepMs: number;
  readonly maxResponseBytes: number;
  /** Maximum number of responses that an owner has. */
  readonly maxResponses: number;
}

export class BackgroundService {
  readonly #ctx: Context;
  readonly #options: BackgroundOptions;
  readonly #records: ResponseRecords;
  /** The runs of this process, of all generations. */
  readonly #runs: Map<string, ActiveRun>;
  /** Name of this process in leases. */
  readonly #instance = randomBytes(9).toString("base64url");
  readonly #cancelElsewhere: (id: string) => Promise<boolean | undefined>;
  readonly #files: ResponseFiles;

  constructor(ctx: Context, options: BackgroundOptions) {
    this.#ctx = ctx;
    this.#options = options;
    this.#files = options.files;
    this.#records = new ResponseRecords(
      () =>
        ctx.jobs ??
        fail("unavailable", "This gateway's store keeps no background responses.", {
          code: "no_jobs",
        }),
    );
    this.#runs = ctx.shared("background responses", () => new Map<string, ActiveRun>());
    this.#cancelElsewhere = ctx.createPeerQuery("cancel background", (id: string) => {
      const run = this.#runs.get(id);
      run?.cancel();
      return run && true;
    });
    if (!ctx.jobs) return;
    ctx.runEvery(SWEEP_MS, () => this.sweep());
    ctx.runEvery(ORPHAN_MS / 24, () => this.deleteOrphans());
  }

  /** Returns how a request runs in the background. */
  begin(
    x: RequestHead,
    body: Body,
  ): Pick<RouteInput, "edits" | "stream"> & { readonly background: BackgroundRun } {
    if (body["store"] === false)
      fail("invalid", "background requires store: true, because the response is stored.", {
        param: "background",
      });
    const owner = ownerOf(x);
    const isStreamed = body["stream"] === true;
    const { maxResponseBytes: maxBytes, keepMs } = this.#options;
    const digest = x.identity?.digest;
    const run = new ActiveRun({
      records: this.#records,
      maxBytes,
      keepMs,
      create: (active) => this.#create(active, { x, owner, body, isStreamed }),
      isKeyValid: () => isKeyValid(this.#ctx, digest),
      onEnded: (id) => void this.#runs.delete(id),
      warn: (fields, message) => this.#ctx.log.warn(fields, message),
    });
    return { background: run, stream: true, edits: { background: undefined, stream: true } };
  }

  async #create(
    run: ActiveRun,
    of: {
      readonly x: RequestHead;
      readonly owner: Owner;
      readonly body: Body;
      readonly isStreamed: boolean;
    },
  ): Promise<OpenResponse> {
    const { x, owner, body, isStreamed } = of;
    const id = this.#files.secrets.createId(PREFIX, owner.name);
    const model = String(body["model"]);
    const created = Math.floor(Date.now() / 1_000);
    const base = createQueuedResponse(body as JsonObject, {
      id: `${PREFIX}_${id}`,
      created,
      model,
    });
    const { log, key } = await this.#files.create(owner, id, run.onWritten);
    try {
      await log.appendAlone(JSON.stringify(base));
      const origin = { request: x.id, trace: x.trace };
      const data = { key, model, origin };
      const lease = { id, instance: this.#instance, dueAt: Date.now() + LEASE_MS };
      const stored = await this.#records.create(owner, lease, data);
      this.#runs.set(id, run);
      await this.#records.requireAtMost(owner, this.#options.maxResponses);
      const answer = isStreamed
        ? this.#streamOf(owner, stored, -1)
        : ({ status: 200, body: base } as const);
      return { stored, log, base, answer };
    } catch (error) {
      this.#runs.delete(id);
      await log.close().catch(() => undefined);
      await this.#erase(id);
      throw error;
    }
  }

  /** Deletes a response with its log. */
  async #erase(id: string): Promise<void> {
    await this.#records.delete(id).catch(() => undefined);
    await this.#files.delete(id);
  }

  /**
   * Returns a response of this client. Undefined for an ID that is not one of its background
   * responses, in the same time whether it exists or not.
   */
  async find(x: RequestHead, id: string): Promise<StoredResponse | undefined> {
    const owner = ownerOf(x);
    const own = this.#files.secrets.parseId(id, PREFIX, owner.name);
    if (own === undefined) return undefined;
    const found = await this.#records.read(own);
    const isOwned =
      found !== undefined && ownerNameOf(found.record.key, found.record.account) === owner.name;
    return isOwned ? this.#endIfLost(found) : undefined;
  }

  /** Marks a response as failed if the lease of its process has ended. */
  async #endIfLost(found: StoredResponse): Promise<StoredResponse> {
    const { id, dueAt = 0 } = found.record;
    if (isFinal(found.state) || dueAt > Date.now() || this.#runs.has(id)) return found;
    try {
      return await this.#markLost(found);
    } catch (error) {
      if (!isVersionConflict(error)) throw error;
      return (await this.#records.read(id)) ?? found;
    }
  }

  #markLost(lost: StoredResponse): Promise<StoredResponse> {
    const dueAt = Date.now() + this.#options.keepMs;
    const state = lost.cancelRequestedAt === undefined ? "failed" : "canceled";
    return this.#records.change(lost, { state, dueAt, data: { reason: "gateway_stopped" } });
  }

  /** Returns a response as it is now, or the stream of its events. */
  async read(x: RequestHead, stored: StoredResponse): Promise<RouteResponse> {
    const owner = ownerOf(x);
    if (x.query.get("stream") === "true")
      return this.#streamOf(owner, stored, readStartingAfter(x.query.get("starting_after")));
    return { status: 200, body: await this.#readNow(owner, stored) };
  }

  async #readNow(owner: Owner, stored: StoredResponse): Promise<Json> {
    const log = await this.#openLog(owner, stored);
    let base: JsonObject;
    try {
      base = await readBase(log);
    } finally {
      await log.close();
    }
    if (stored.last === undefined) return withState(base, stored);
    const tail = await this.#openLog(owner, stored, stored.last);
    try {
      const [line] = (await tail.next(stored.bytes)) ?? failContent();
      return responseOf(line!, base);
    } finally {
      await tail.close();
    }
  }

  #openLog(
    owner: Owner,
    { record: { id }, key }: StoredResponse,
    at?: StoredResponse["last"],
  ): Promise<EventLogReader> {
    return this.#files.open(owner, id, key, at);
  }

  #streamOf(owner: Owner, stored: StoredResponse, after: number): RouteResponse {
    return this.#options.streams.respond(owner, this.#follow(owner, stored, after));
  }

  /** Yields the events after this number, until the response has ended. */
  async *#follow(
    owner: Owner,
    stored: StoredResponse,
    after: number,
  ): AsyncGenerator<string, void> {
    const { id } = stored.record;
    const log = await this.#openLog(owner, stored);
    try {
      const base = await readBase(log);
      let current = stored;
      let sequence = 0;
      for (let silentMs = 0, polls = 0; ;) {
        const run = this.#runs.get(id);
        const seen = run?.changes ?? 0;
        const lines = await log.next(current.bytes);
        if (lines) {
          const fresh = lines.slice(Math.max(0, after + 1 - sequence));
          sequence += lines.length;
          silentMs = 0;
          if (fresh.length > 0) yield fresh.map(encodeLineForClient).join("");
          continue;
        }
        if (isFinal(current.state)) break;
        await (run ? run.whenChanged(seen, PING_MS) : sleep(POLL_MS));
        if (run === undefined) silentMs += POLL_MS;
        else silentMs = run.changes === seen ? silentMs + PING_MS : 0;
        if (silentMs >= PING_MS && !run?.isEnded) {
          silentMs = 0;
          yield PING;
        }
        // A run that has ended has written its record before.
        if (run ? !run.isEnded : ++polls % POLLS_PER_RECORD !== 0) continue;
        const found = await this.#records.read(id);
        if (!found) return;
        current = await this.#endIfLost(found);
      }
      const last = lastLine(current, base, sequence);
      if (last !== undefined && sequence > after) yield encodeLineForClient(last);
    } finally {
      await log.close();
    }
  }

  /** Cancels a response that runs, and returns it as it is then. */
  async cancel(x: RequestHead, id: string): Promise<Json> {
    const found = (await this.find(x, id)) ?? failResponse(id);
    return this.#readNow(ownerOf(x), await this.#end(found));
  }

  async #end(stored: StoredResponse): Promise<StoredResponse> {
    const { id } = stored.record;
    if (isFinal(stored.state)) return stored;
    await this.requestCancellation(stored);
    const run = this.#runs.get(id);
    if (run) {
      await run.ended;
      return (await this.#records.read(id)) ?? stored;
    }
    for (let waited = 0; waited < CANCEL_WAIT_MS; waited += POLL_MS) {
      const found = await this.#records.read(id);
      if (!found || isFinal(found.state)) return found ?? stored;
      await sleep(POLL_MS);
    }
    return stored;
  }

  /** Requests the cancellation of a response that runs, in this process or in another one. */
  async requestCancellation(stored: StoredResponse): Promise<void> {
    const run = this.#runs.get(stored.record.id);
    if (run) return run.cancel();
    await this.#markCanceled(stored);
    await this.#cancelElsewhere(stored.record.id);
  }

  /** Marks a response that another process runs. That process cancels it when it renews its lease. */
  async #markCanceled(stored: StoredResponse): Promise<void> {
    for (let before: StoredResponse | undefined = stored; before && !isFinal(before.state);) {
      const { dueAt = Date.now() } = before.record;
      try {
        await this.#records.change(before, { dueAt, data: { cancelRequestedAt: Date.now() } });
        return;
      } catch (error) {
        if (!isVersionConflict(error)) throw error;
        before = await this.#records.read(stored.record.id);
      }
    }
  }

  /** Deletes a response. A response that runs is canceled first. */
  async delete(stored: StoredResponse): Promise<RouteResponse> {
    await this.#end(stored);
    const { id } = stored.record;
    await this.#erase(id);
    return { status: 200, body: { id: `${PREFIX}_${id}`, object: "response", deleted: true } };
  }

  /** Deletes expired responses, and ends those whose process has stopped. */
  async sweep(): Promise<void> {
    for (const due of await this.#records.leaseDue(this.#instance)) {
      if (isFinal(due.state)) await this.#erase(due.record.id);
      else
        await this.#markLost(due).catch((error: unknown) => {
          if (!isVersionConflict(error)) throw error;
        });
    }
  }

  /** Deletes old files that no record names. A file has the ID of its record, up to a dot. */
  async deleteOrphans(): Promise<void> {
    for await (const name of this.#files.listOlder(Date.now() - ORPHAN_MS)) {
      const [id] = name.split(".");
      if ((await this.#ctx.jobs!.find(id!)) === undefined) await this.#files.delete(name);
    }
  }
}

/** Reads the response before its first event. */
export async function readBase(log: EventLogReader): Promise<JsonObject> {
  const [text] = (await log.next()) ?? failContent();
  return JSON.parse(text!) as JsonObject;
}

/** Returns a response whose log has no last event. */
function withState(base: JsonObject, { state, reason }: StoredResponse): JsonObject {
  if (state === "canceled") return { ...base, status: "cancelled" };
  if (state !== "running") return failedResponse(base, FAILURES[reason ?? "gateway_stopped"]);
  return { ...base, status: "in_progress" };
}

/** Returns the last event of a response that failed without one. */
function lastLine(
  stored: StoredResponse,
  base: JsonObject,
  sequence: number,
): EventLine | undefined {
  const { state, last } = stored;
  return state === "failed" && last === undefined
    ? failedLine(withState(base, stored), sequence)
    : undefined;
}

export const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));

export const failContent = (): never =>
  fail("unavailable", "The content of this response is not available.", {
    code: "response_unavailable",
  });
