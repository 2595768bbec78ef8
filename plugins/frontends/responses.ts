// The responses endpoint: what OpenAI's newer SDKs, the AI SDK and Codex call.
import {
  defineFrontend,
  fail,
  type RequestHead,
  type Body,
  type Context,
  type LedgerEntry,
  type Json,
  type JsonObject,
  type RouteInput,
} from "tollgate/plugin";
import {
  failItem,
  failPreviousResponse,
  failResponse,
  responses,
} from "tollgate/protocols/responses";
import { ItemMemory, finalResponseText } from "./item-memory.ts";
import { versionedPaths, azurePaths } from "./route-paths.ts";
import { acceptOption, extractCredential } from "./client-credential.ts";

const MIB = 1024 * 1024;
/** What a client may still refer to is what its conversation is about. */
const ITEM_TTL_MS = 3_600_000;
/** Longer answers hold pictures; clients do not refer to those. */
const MAX_REMEMBERED_RESPONSE = 2 * MIB;
/** A reference is a few bytes, and what it stands for may be two million: a request stays one. */
const MAX_RESOLVED_BYTES = 32 * MIB;

export default defineFrontend({
  api: 1,
  name: "responses",
  summary: "OpenAI responses: POST /v1/responses",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      accept: acceptOption("bearer", "api-key"),
      reasoning: {
        enum: ["summary", "text"],
        default: "summary",
        description:
          "How reasoning of other protocols is shown: as a summary, which every client knows, or as reasoning text",
      },
      item_memory_mb: {
        type: "integer",
        minimum: 0,
        maximum: 4096,
        default: 64,
        description:
          "How much of recent answers is kept in memory, per process, for SDKs that refer to items by id; 0 keeps nothing",
      },
    },
  },
  setup({ accept: schemes, reasoning, item_memory_mb }, ctx) {
    const memory = createItemMemory(item_memory_mb, ctx);
    const find: FindItem | undefined = memory && createItemFinder(memory, ctx);
    const made = (x: RequestHead, id: string) => findLedgerEntry(ctx, x, id);
    /** A by-id operation goes to the provider that made the answer, for the key that asked for it. */
    const byId = (name: string) => ({
      actionType: "relay" as const,
      action: name,
      async readInput(x: RequestHead): Promise<RouteInput> {
        const id = x.params["id"] ?? "";
        const entry = await made(x, id);
        return {
          model: entry?.target ?? failResponse(id),
          stream: x.query.get("stream") === "true",
        };
      },
    });
    return {
      protocol: responses({ reasoning }),
      extractCredential: (headers) => extractCredential(headers, schemes),
      routes: [
        {
          method: "POST",
          path: [...versionedPaths("/responses"), ...azurePaths("/responses")],
          actionType: "generate",
          async readInput(x, body) {
            rejectStoredContent(body);
            return {
              model: await resolveModel(x, body, made),
              edits: await resolveReferences(x, body["input"], find),
              record:
                memory && body["store"] !== false && x.privacy === "off"
                  ? {
                      maxBytes: MAX_REMEMBERED_RESPONSE,
                      onRecorded: (got) => rememberResponse(memory, x, got),
                    }
                  : undefined,
            };
          },
        },
        {
          method: "POST",
          path: [
            ...versionedPaths("/responses/input_tokens"),
            ...azurePaths("/responses/input_tokens"),
          ],
          actionType: "count",
          async readInput(x, body) {
            return {
              model: await resolveModel(x, body, made),
              edits: await resolveReferences(x, body["input"], find),
              stream: false,
            };
          },
        },
        {
          method: "GET",
          path: [...versionedPaths("/responses/:id"), ...azurePaths("/responses/:id")],
          ...byId("retrieve"),
        },
        {
          method: "DELETE",
          path: [...versionedPaths("/responses/:id"), ...azurePaths("/responses/:id")],
          ...byId("delete"),
        },
        {
          method: "GET",
          path: [
            ...versionedPaths("/responses/:id/input_items"),
            ...azurePaths("/responses/:id/input_items"),
          ],
          ...byId("input_items"),
        },
      ],
    };
  },
});

function createItemMemory(mb: number, ctx: Context): ItemMemory | undefined {
  if (mb === 0) return undefined;
  const bounds = { bytes: mb * MIB, bytesPerKey: Math.min(mb, 8) * MIB, maxAgeMs: ITEM_TTL_MS };
  const memory = ctx.shared(`items ${mb}`, () => new ItemMemory(bounds));
  ctx.runEvery(60_000, () => memory.removeExpired());
  return memory;
}

const ownerOf = (x: RequestHead): string => x.identity?.id ?? "";

function rememberResponse(
  memory: ItemMemory,
  x: RequestHead,
  got: { contentType: string; body: Buffer },
): void {
  const answer = finalResponseText(got.contentType, got.body);
  if (answer !== undefined) memory.add(ownerOf(x), answer);
}

type FindItem = (key: string, id: string) => Promise<JsonObject | undefined>;

/** Here, or in the process that answered the key the last time. */
function createItemFinder(memory: ItemMemory, ctx: Context): FindItem {
  const elsewhere = ctx.createPeerQuery(({ key, id }: { key: string; id: string }) =>
    memory.find(key, id),
  );
  return async (key, id) => memory.find(key, id) ?? elsewhere({ key, id });
}

/** The input with whole items where references stood; nothing when there were none. */
async function resolveReferences(
  x: RequestHead,
  input: unknown,
  find: FindItem | undefined,
): Promise<Body | undefined> {
  if (!Array.isArray(input) || !input.some(isReference)) return undefined;
  const items: Json[] = [];
  const met = new Map<string, { item: JsonObject; bytes: number }>();
  let bytes = 0;
  const recall = async (id: string): Promise<JsonObject | undefined> => {
    const item = met.get(id)?.item ?? (await find?.(ownerOf(x), id));
    if (!item) return undefined;
    if (!met.has(id)) met.set(id, { item, bytes: JSON.stringify(item).length });
    bytes += met.get(id)!.bytes;
    if (bytes > MAX_RESOLVED_BYTES)
      fail("too_large", "The items that are referred to are larger than 32 MiB together.", {
        param: "input",
        code: "request_too_large",
      });
    return item;
  };
  // One after the other: the first that is not known ends it.
  for (const item of input as readonly JsonObject[]) {
    const id = String(item["id"]);
    const known = !isReference(item) ? item : x.privacy === "off" ? await recall(id) : undefined;
    items.push(known ?? failItem(id, `input[${items.length}]`));
  }
  return { input: items };
}

/** Its type may be missing: then it has nothing but its id. */
function isReference(item: JsonObject): boolean {
  const type = item["type"] ?? undefined;
  if (type === undefined) return item["role"] === undefined && typeof item["id"] === "string";
  return type === "item_reference";
}

/** What would go on after the answer, or be found again by every client: no provider's setting makes it safe. */
function rejectStoredContent(body: Body): void {
  if (body["background"] === true)
    fail(
      "invalid",
      "background is not served here: what runs on unasked cannot be billed to a client. Use stream: true.",
      { param: "background", code: "unsupported_parameter" },
    );
  if (body["conversation"] != null)
    fail("invalid", "conversation is not served here. Send the whole conversation in input.", {
      param: "conversation",
      code: "unsupported_parameter",
    });
}

type FindLedgerEntry = (x: RequestHead, id: string) => Promise<LedgerEntry | undefined>;

/** Which provider made an answer is in the ledger, under the key that paid for it; under privacy nothing was kept anywhere. */
async function findLedgerEntry(
  ctx: Context,
  x: RequestHead,
  id: string,
): Promise<LedgerEntry | undefined> {
  if (x.privacy !== "off" || !x.identity || id === "") return undefined;
  const { items } = await ctx.ledger.listEntries(
    { upstreamId: id, key: x.identity.id },
    { limit: 8 },
    { signal: x.signal },
  );
  return items.find((entry) => entry.target.protocol === "responses");
}

/** A continued answer goes on where it was made; a client whose answer cannot be continued is told to send everything again. */
async function resolveModel(
  x: RequestHead,
  body: Body,
  made: FindLedgerEntry,
): Promise<RouteInput["model"]> {
  const model = String(body["model"]);
  const previous = body["previous_response_id"];
  if (previous == null) return model;
  const id = String(previous);
  const entry = (await made(x, id)) ?? failPreviousResponse(id);
  const { provider, credential } = entry.target;
  if (model.startsWith(`${provider}/`))
    return { provider, credential, model: model.slice(provider.length + 1) };
  return entry.clientRequest?.model === model ? entry.target : failPreviousResponse(id);
}
