// Responses that a provider runs in the background, as their clients use them. An engine polls and
// bills them.
import {
  fail,
  getFault,
  type Body,
  type Context,
  type ErrorKind,
  type JobLines,
  type Json,
  type JsonObject,
  type Opt,
  type PlannedBackground,
  type RequestHead,
  type RouteResponse,
} from "tollgate/plugin";
import { createQueuedResponse } from "tollgate/protocols/responses";
import { ownerOf, type Owner } from "../jobs/owned-records.ts";
import { Submission } from "../videos/submission.ts";
import { CANCEL_WAIT_MS, failContent, PREFIX, readBase, sleep } from "./background-service.ts";
import { releaseReservation } from "./provider-response-engine.ts";
import {
  isBeingCreated,
  isOpen,
  ownerOfRecord,
  requestFileOf,
  type ProviderResponse,
  type ProviderResponseData,
  type ProviderResponseRecords,
} from "./provider-response-record.ts";
import { encodeLineForClient, failedLine, failedResponse, responseOf } from "./response-events.ts";
import type { ResponseFiles } from "./response-files.ts";
import type { ResponseRecords } from "./response-record.ts";
import { PING, PING_MS, readStartingAfter, type ResponseStreams } from "./response-streams.ts";

/** Maximum time in milliseconds of the request that starts a response at the provider. */
const SUBMIT_MS = 3 * 60_000;
/** Time in milliseconds after which an engine ends a creation that was interrupted. */
const CREATE_MS = 10 * 60_000;
/** Maximum time in milliseconds to cancel a response that its client does not know of. */
const CANCEL_MS = 30_000;
/** Time between two reads of a record, in milliseconds. */
const READ_MS = 1_000;
const MAX_REFERENCE_BYTES = 2 * 1024;
const MAX_MODEL = 256;

/**
 * Errors of a provider's `create` after which it is unknown whether the provider has started the
 * response, unless it refused each request.
 */
const AMBIGUOUS_KINDS: ReadonlySet<ErrorKind> = new Set(["upstream", "timeout", "canceled"]);

export interface ProviderResponseOptions {
  readonly files: ResponseFiles;
  readonly streams: ResponseStreams;
  readonly records: ProviderResponseRecords;
  /** Records of all background responses, which have one limit. */
  readonly allRecords: ResponseRecords;
  /** Maximum number of responses that an owner has. */
  readonly maxResponses: number;
  /** Called when an engine has something to do. */
  readonly wake: () => void;
}

export class ProviderResponseService {
  readonly #ctx: Context;
  readonly #of: ProviderResponseOptions;

  constructor(ctx: Context, of: ProviderResponseOptions) {
    this.#ctx = ctx;
    this.#of = of;
  }

  get #jobLines(): JobLines {
    return this.#ctx.jobLines!;
  }

  /**
   * Starts a request at its provider. Returns undefined if the provider refused it: the gateway then
   * runs it, and nothing is left of it here.
   */
  async start(x: RequestHead, body: Body, call: PlannedBackground): Promise<Opt<RouteResponse>> {
    const { records } = this.#of;
    const owner = ownerOf(x);
    const { response, base } = await this.#create(owner, x, body, call);
    const { id } = response.record;
    const { target } = call;
    const opened = this.#jobLines.openBackground(target, AbortSignal.timeout(SUBMIT_MS));
    const submission = new Submission();
    let reference: string;
    try {
      const { background, client } =
        opened ?? fail("unavailable", `The provider ${target.provider} is not available any more.`);
      reference = await background.create(
        { model: target.model, path: target.path, headers: target.headers, body: call.body },
        submission.observe(client),
      );
    } catch (error) {
      const fault = getFault(error);
      const isAmbiguous = fault === undefined || AMBIGUOUS_KINDS.has(fault.kind);
      if (!submission.isRefused && isAmbiguous) return this.#failUnknown(response, error);
      this.#ctx.log.warn(
        { response: id, provider: target.provider, err: fault?.message ?? error },
        "background mode refused, gateway runs response",
      );
      await this.#release(response);
      return undefined;
    }
    const seal = () =>
      this.#of.files.secrets.wrapKey(owner.name, `${id}.reference`, Buffer.from(reference));
    // If the client has disconnected, it does not know of the response.
    const cancelRequestedAt = x.signal.aborted ? Date.now() : undefined;
    const store = (before: ProviderResponse) =>
      records.change(before, {
        state: "running",
        data: {
          reference: seal(),
          isQueued: true,
          cancelRequestedAt: before.cancelRequestedAt ?? cancelRequestedAt,
        },
        dueAt: Date.now(),
      });
    if (Buffer.byteLength(reference) > MAX_REFERENCE_BYTES)
      return this.#failUnknown(response, new Error("The provider's reference is too long."));
    try {
      await store(response).catch(async (error: unknown) => {
        const found = await records.read(id);
        // It was stored, although the store reported an error.
        if (found?.reference !== undefined) return;
        // An engine has ended the response, because its creation took too long.
        if (found?.state !== "submitting") throw error;
        // A second time, because the record has the only reference.
        await store(found);
      });
    } catch (error) {
      await this.#cancelUnknown(call, reference);
      return this.#failUnknown(response, error);
    }
    this.#of.wake();
    return { status: 200, body: base };
  }

  /** Creates the record of a response, and reserves its highest cost. */
  async #create(owner: Owner, x: RequestHead, body: Body, call: PlannedBackground) {
    const { files, records, allRecords, maxResponses } = this.#of;
    const id = files.secrets.createId(PREFIX, owner.name);
    const model = String(body["model"]).slice(0, MAX_MODEL);
    const created = Math.floor(Date.now() / 1_000);
    const of = { id: `${PREFIX}_${id}`, created, model };
    const previous_response_id = body["previous_response_id"] ?? null;
    const base = {
      ...createQueuedResponse(body as JsonObject, of),
      previous_response_id,
    } as JsonObject;
    const attempt = `response_${id}`;
    const dueAt = Date.now() + CREATE_MS;
    let response: ProviderResponse | undefined;
    try {
      const key = await this.#writeFile(owner, id, JSON.stringify(base));
      const line = call.line.body.toString();
      const requestKey = await this.#writeFile(owner, requestFileOf(id), line);
      const data = dataOf(call, x, { key, requestKey, model });
      response = await records.create(owner, { id, attempt, dueAt }, data);
      await allRecords.requireAtMost(owner, maxResponses);
      const { target, claims, holdNano } = call;
      await this.#jobLines.reserveJob({ attempt, target, claims, holdNano }, { parentRequest: x });
      response = await records.change(response, { state: "submitting", dueAt });
      return { response, base };
    } catch (error) {
      if (response) await this.#release(response);
      else await this.#deleteFiles(id);
      throw error;
    }
  }

  async #writeFile(owner: Owner, name: string, text: string): Promise<string> {
    const { log, key } = await this.#of.files.create(owner, name);
    try {
      await log.appendAlone(text);
    } finally {
      await log.close();
    }
    return key;
  }

  async #deleteFiles(id: string): Promise<void> {
    for (const name of [id, requestFileOf(id)]) await this.#of.files.delete(name);
  }

  /** Ends a response that the provider has not started. It is not billed. */
  async #release(response: ProviderResponse): Promise<void> {
    const { id } = response.record;
    try {
      await releaseReservation(this.#jobLines, response, "canceled");
      // An operator may have canceled it in the meantime.
      await this.#of.records.delete((await this.#of.records.read(id)) ?? response);
      await this.#deleteFiles(id);
    } catch (err) {
      // The reservation is open until an engine ends the response, when it is due.
      this.#ctx.log.warn({ response: id, err }, "creation of background response not ended");
      this.#of.wake();
    }
  }

  /** Cancels a response at the provider whose reference cannot be stored. */
  async #cancelUnknown({ target }: PlannedBackground, reference: string): Promise<void> {
    const opened = this.#jobLines.openBackground(target, AbortSignal.timeout(CANCEL_MS));
    await opened?.background.cancel(reference, opened.client).catch(() => undefined);
  }

  /** Ends a response that the provider may have started. An engine bills it as an estimate. */
  async #failUnknown(response: ProviderResponse, cause: unknown): Promise<never> {
    const { id } = response.record;
    this.#ctx.log.warn(
      { response: id, err: getFault(cause)?.message ?? cause },
      "start of background response unknown",
    );
    await this.#of.records.request(response, {}).catch(() => undefined);
    this.#of.wake();
    return fail(
      getFault(cause)?.kind === "timeout" ? "timeout" : "upstream",
      "The provider did not confirm that it started the response, which may be billed. Send the request again to start another response.",
      { code: "background_start_unknown", cause },
    );
  }

  /**
   * Returns a response of this client. Undefined for an ID that is not one of its responses, in the
   * same time whether it exists or not.
   */
  async find(x: RequestHead, id: string): Promise<ProviderResponse | undefined> {
    const owner = ownerOf(x);
    const own = this.#of.files.secrets.parseId(id, PREFIX, owner.name);
    const found = own === undefined ? undefined : await this.#of.records.read(own);
    if (!found || ownerOfRecord(found).name !== owner.name || found.isDeleted) return undefined;
    return isBeingCreated(found.state) ? undefined : found;
  }

  /** Returns the provider's ID of a response, for a request that continues it. */
  upstreamIdOf(response: ProviderResponse): string | undefined {
    const { record, reference } = response;
    if (reference === undefined) return undefined;
    const { name } = ownerOfRecord(response);
    const { secrets } = this.#of.files;
    return secrets.unwrapKey(name, `${record.id}.reference`, reference).toString();
  }

  /** Returns a response as it is now, or the stream of its events. */
  async read(x: RequestHead, response: ProviderResponse): Promise<RouteResponse> {
    if (x.query.get("stream") !== "true")
      return { status: 200, body: await this.#readNow(response) };
    const after = readStartingAfter(x.query.get("starting_after"));
    return this.#of.streams.respond(ownerOfRecord(response), this.#follow(response, after));
  }

  async #readNow(response: ProviderResponse): Promise<Json> {
    const { files } = this.#of;
    const owner = ownerOfRecord(response);
    const base = await this.#readBase(response);
    const { result } = response;
    if (!result || isOpen(response.state)) return withState(base, response);
    const tail = await files.open(owner, result.file, result.key, result.last);
    try {
      const [line] = (await tail.next(result.bytes)) ?? failContent();
      return responseOf(line!, base);
    } finally {
      await tail.close();
    }
  }

  async #readBase(response: ProviderResponse): Promise<JsonObject> {
    const owner = ownerOfRecord(response);
    const log = await this.#of.files.open(owner, response.record.id, response.key);
    try {
      return await readBase(log);
    } finally {
      await log.close();
    }
  }

  /** Yields the events after this number, when the response has ended. */
  async *#follow(response: ProviderResponse, after: number): AsyncGenerator<string, void> {
    const { files, records } = this.#of;
    let current: ProviderResponse | undefined = response;
    for (let silentMs = 0; isOpen(current.state);) {
      await sleep(READ_MS);
      silentMs += READ_MS;
      if (silentMs >= PING_MS) {
        silentMs = 0;
        yield PING;
      }
      current = await records.read(response.record.id);
      if (!current || current.isDeleted) return;
    }
    const { result, state } = current;
    if (!result) {
      if (state === "canceled" || after >= 0) return;
      const failed = withState(await this.#readBase(current), current);
      return yield encodeLineForClient(failedLine(failed, 0));
    }
    const log = await files.open(ownerOfRecord(current), result.file, result.key);
    try {
      let sequence = 0;
      for (let lines; (lines = await log.next(result.bytes)); sequence += lines.length) {
        const fresh = lines.slice(Math.max(0, after + 1 - sequence));
        if (fresh.length > 0) yield fresh.map(encodeLineForClient).join("");
      }
    } finally {
      await log.close();
    }
  }

  /** Cancels a response that runs, and returns it as it is then. */
  async cancel(response: ProviderResponse): Promise<Json> {
    const { records } = this.#of;
    let current: ProviderResponse = response;
    if (isOpen(current.state)) await this.requestCancellation(current);
    for (let waited = 0; isOpen(current.state) && waited < CANCEL_WAIT_MS; waited += READ_MS / 4) {
      await sleep(READ_MS / 4);
      current = (await records.read(response.record.id)) ?? current;
    }
    return this.#readNow(current);
  }

  /** Requests the cancellation of a response that runs. An engine cancels it at the provider. */
  async requestCancellation(response: ProviderResponse): Promise<void> {
    if (response.cancelRequestedAt === undefined)
      await this.#of.records.request(response, { cancelRequestedAt: Date.now() });
    this.#of.wake();
  }

  /**
   * Deletes a response, here and at the provider. A response that runs is canceled first. It does
   * not exist for the client from now on.
   */
  async delete(response: ProviderResponse): Promise<RouteResponse> {
    const { cancelRequestedAt = isOpen(response.state) ? Date.now() : undefined } = response;
    await this.#of.records.request(response, { isDeleted: true, cancelRequestedAt });
    this.#of.wake();
    const id = `${PREFIX}_${response.record.id}`;
    return { status: 200, body: { id, object: "response", deleted: true } };
  }
}

/** Returns a response that has no result. */
function withState(base: JsonObject, response: ProviderResponse): JsonObject {
  const { state, isQueued, end } = response;
  if (state === "canceled") return { ...base, status: "cancelled" };
  if (isOpen(state)) return { ...base, status: isQueued ? "queued" : "in_progress" };
  return failedResponse(base, end?.message ?? "The response failed.");
}

function dataOf(
  { target, account, labels, price, pricedAt, holdNano, line }: PlannedBackground,
  x: RequestHead,
  of: Pick<ProviderResponseData, "key" | "requestKey" | "model">,
): ProviderResponseData {
  return {
    ...of,
    path: line.path,
    // The headers are sent once.
    target: { ...target, headers: {} },
    origin: { request: x.id, trace: x.trace },
    digest: x.identity?.digest,
    account: account ?? undefined,
    labels,
    price: price ?? undefined,
    pricedAt,
    holdNano: holdNano?.toString() ?? null,
  };
}
