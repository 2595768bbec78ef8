// Routes of /v1/messages/batches, in Anthropic's format.
import { fail, type Body, type Json, type RequestHead, type Route } from "tollgate/plugin";
import type { BatchPlanner } from "../batch-planner.ts";
import { isFinal, type InputError, type StoredBatch } from "../batch-record.ts";
import { CREATE_MS, type BatchService } from "../batch-service.ts";
import { encodeDirect } from "./direct-lines.ts";
import type { FileService } from "../file-service.ts";
import { memberText } from "../line-text.ts";
import { ownerOf } from "../owned-records.ts";
import { BATCH_FILE_MS, idOf, ok, readLimit, rejectZeroRetention } from "./request-fields.ts";
import { splitRequestList, type ListedRequest } from "./request-list.ts";

const MAX_REQUESTS = 100_000;
const PATH = "/v1/messages";
const NAME = "message batch";
const CUSTOM_ID = /^[\w-]{1,64}$/;

export function anthropicBatchRoutes(batches: BatchService, files: FileService): readonly Route[] {
  const all = "/v1/messages/batches";
  const one = `${all}/:id`;
  const find = (x: RequestHead) => batches.find(ownerOf(x), asOwnId(idOf(x)), NAME);
  return [
    {
      method: "POST",
      path: all,
      body: "stream",
      timeoutMs: CREATE_MS,
      async handle(x: RequestHead, content: AsyncIterable<Uint8Array>) {
        rejectZeroRetention(x);
        const input = new ListReader();
        const batch = await batches.create(ownerOf(x), x, {
          format: "anthropic",
          path: PATH,
          keepMs: BATCH_FILE_MS,
          readLines: (planner) => input.read(content, planner),
          model: () => input.model,
        });
        return ok(encodeBatch(batch, x));
      },
    },
    {
      method: "GET",
      path: all,
      async handle(x) {
        if (x.query.has("before_id"))
          fail("invalid", "before_id is not supported. Use after_id.", { param: "before_id" });
        const limit = readLimit(x.query, 20, { max: 1_000 });
        const cursor = x.query.get("after_id") ?? x.query.get("page");
        const after = cursor ?? undefined;
        const page = await batches.list(ownerOf(x), { limit, after, format: "anthropic" });
        const data = page.items.map((batch) => encodeBatch(batch, x));
        const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
        return ok({ data, first_id, last_id, has_more: page.hasMore });
      },
    },
    {
      method: "GET",
      path: one,
      handle: async (x) => ok(encodeBatch(await find(x), x)),
    },
    {
      method: "POST",
      path: `${one}/cancel`,
      handle: async (x) =>
        ok(encodeBatch(await batches.cancel(ownerOf(x), asOwnId(idOf(x)), NAME), x)),
    },
    {
      method: "DELETE",
      path: one,
      async handle(x) {
        const { record } = await batches.delete(ownerOf(x), asOwnId(idOf(x)), NAME);
        return ok({ id: `msgbatch_${record.id}`, type: "message_batch_deleted" });
      },
    },
    {
      method: "GET",
      path: `${one}/results`,
      async handle(x) {
        const owner = ownerOf(x);
        const batch = await find(x);
        if (!isFinal(batch.state))
          fail("invalid", "Results are available when the batch has ended.", {
            code: "batch_not_ended",
          });
        const file = await files.find(owner, `file-${batch.outputFile}`);
        return {
          status: 200,
          headers: { "content-type": "application/x-jsonl", "content-length": String(file.bytes) },
          body: await files.read(owner, file),
        };
      },
    },
  ];
}

/** Returns the ID with the prefix of all batches. */
const asOwnId = (id: string): string => id.replace(/^msgbatch_/, "batch_");

/** Reads the requests of a body. */
class ListReader {
  model: string | undefined;

  async read(
    content: AsyncIterable<Uint8Array>,
    planner: BatchPlanner,
  ): Promise<readonly InputError[]> {
    let number = 0;
    for await (const request of splitRequestList(content, "requests")) {
      if (++number > MAX_REQUESTS)
        fail("too_large", `A batch can have up to ${MAX_REQUESTS} requests.`, {
          param: "requests",
        });
      await this.#readRequest(number, request, planner);
    }
    return [];
  }

  async #readRequest(
    number: number,
    { bytes, line, column }: ListedRequest,
    planner: BatchPlanner,
  ): Promise<void> {
    const param = `requests.${number - 1}`;
    const request = parseRequest(bytes);
    if (!request)
      return fail("invalid", `${param} is not a JSON object: see line ${line}, column ${column}.`, {
        param,
        code: "invalid_json",
      });
    const { custom_id: id, params } = request;
    const problem = planner.registerId(id);
    if (problem !== undefined || !CUSTOM_ID.test(id as string))
      return fail("invalid", problem ?? "custom_id must have 1 to 64 letters, digits, _, or -.", {
        param: `${param}.custom_id`,
      });
    if (typeof params !== "object" || params === null || Array.isArray(params))
      return fail("invalid", "params must be an object.", { param: `${param}.params` });
    const { model } = params as Body;
    if (typeof model === "string") this.model ??= model;
    const text = memberText(bytes, "params")!;
    const body = /[\r\n]/.test(text.toString())
      ? Buffer.from(JSON.stringify(JSON.parse(text.toString())))
      : text;
    return planner.add(number, id as string, body);
  }
}

function parseRequest(bytes: Buffer): Body | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Body) : undefined;
  } catch {
    return undefined;
  }
}

const time = (at: number | undefined): string | null =>
  at === undefined ? null : new Date(at).toISOString();

function encodeBatch(batch: StoredBatch, x: RequestHead): { id: string } & Record<string, Json> {
  const { record, state, times, expiresAt, cancelRequestedAt } = batch;
  const id = `msgbatch_${record.id}`;
  const hasEnded = isFinal(state);
  const status = hasEnded ? "ended" : cancelRequestedAt === undefined ? "in_progress" : "canceling";
  const hasResults = hasEnded && batch.usage !== undefined && batch.outputFile !== undefined;
  return {
    id,
    type: "message_batch",
    processing_status: status,
    request_counts: encodeCounts(batch, hasEnded),
    created_at: time(record.createdAt),
    expires_at: time(expiresAt),
    ended_at: hasEnded ? time(times[state]) : null,
    cancel_initiated_at: time(cancelRequestedAt),
    archived_at: null,
    results_url: hasResults ? `${originOf(x)}/v1/messages/batches/${id}/results` : null,
    ...encodeDirect(batch),
  };
}

/** All requests count as processing until the batch has ended. */
function encodeCounts({ counts }: StoredBatch, hasEnded: boolean): Json {
  const { total, succeeded, failed, canceled, expired } = counts;
  return hasEnded
    ? { processing: 0, succeeded, errored: failed, canceled, expired }
    : { processing: total, succeeded: 0, errored: 0, canceled: 0, expired: 0 };
}

/** Returns the origin under which the client reaches the gateway. */
function originOf(x: RequestHead): string {
  const host = x.headers["host"];
  const protocol = x.headers["x-forwarded-proto"] === "https" ? "https" : "http";
  return `${protocol}://${String(host)}`;
}
