// The responses endpoint: what OpenAI's newer SDKs, the AI SDK and Codex call.
import {
  defineFrontend,
  fail,
  type Arrival,
  type Body,
  type Context,
  type Entry,
  type Json,
  type JsonObject,
  type RouteInput,
} from "tollgate/plugin";
import { noItem, noPrevious, noResponse, responses } from "tollgate/protocols/responses";
import { ItemMemory, lastWord } from "./item-memory.ts";
import { at, onAzure } from "./paths.ts";
import { accept, presented } from "./presented.ts";

const MIB = 1024 * 1024;
/** What a client may still refer to is what its conversation is about. */
const HOUR = 3_600_000;
/** Longer answers hold pictures; clients do not refer to those. */
const LONGEST = 2 * MIB;
/** A reference is a few bytes, and what it stands for may be two million: a request stays one. */
const MOST_RECALLED = 32 * MIB;

export default defineFrontend({
  api: 1,
  name: "responses",
  summary: "OpenAI responses: POST /v1/responses",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      accept: accept("bearer", "api-key"),
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
    const memory = memoryOf(item_memory_mb, ctx);
    const find: Find | undefined = memory && finding(memory, ctx);
    const made = (x: Arrival, id: string) => entryOf(ctx, x, id);
    /** A by-id operation goes to the provider that made the answer, for the key that asked for it. */
    const byId = (name: string) => ({
      op: "relay" as const,
      name,
      async read(x: Arrival): Promise<RouteInput> {
        const id = x.params["id"] ?? "";
        const entry = await made(x, id);
        return { model: entry?.target ?? noResponse(id), stream: x.query.get("stream") === "true" };
      },
    });
    return {
      protocol: responses({ reasoning }),
      secret: (headers) => presented(headers, schemes),
      routes: [
        {
          method: "POST",
          path: [...at("/responses"), ...onAzure("/responses")],
          op: "generate",
          async read(x, body) {
            refuseLasting(body);
            return {
              model: await modelOf(x, body, made),
              edits: await whole(x, body["input"], find),
              record:
                memory && body["store"] !== false && x.privacy === "off"
                  ? { max: LONGEST, to: (got) => keep(memory, x, got) }
                  : undefined,
            };
          },
        },
        {
          method: "POST",
          path: [...at("/responses/input_tokens"), ...onAzure("/responses/input_tokens")],
          op: "count",
          async read(x, body) {
            return {
              model: await modelOf(x, body, made),
              edits: await whole(x, body["input"], find),
              stream: false,
            };
          },
        },
        {
          method: "GET",
          path: [...at("/responses/:id"), ...onAzure("/responses/:id")],
          ...byId("retrieve"),
        },
        {
          method: "DELETE",
          path: [...at("/responses/:id"), ...onAzure("/responses/:id")],
          ...byId("delete"),
        },
        {
          method: "GET",
          path: [...at("/responses/:id/input_items"), ...onAzure("/responses/:id/input_items")],
          ...byId("input_items"),
        },
      ],
    };
  },
});

function memoryOf(mb: number, ctx: Context): ItemMemory | undefined {
  if (mb === 0) return undefined;
  const bounds = { bytes: mb * MIB, each: Math.min(mb, 8) * MIB, ms: HOUR };
  const memory = ctx.shared(`items ${mb}`, () => new ItemMemory(bounds));
  ctx.every(60_000, () => memory.sweep());
  return memory;
}

const ownerOf = (x: Arrival): string => x.identity?.id ?? "";

function keep(memory: ItemMemory, x: Arrival, got: { mime: string; body: Buffer }): void {
  const answer = lastWord(got.mime, got.body);
  if (answer !== undefined) memory.keep(ownerOf(x), answer);
}

type Find = (key: string, id: string) => Promise<JsonObject | undefined>;

/** Here, or in the process that answered the key the last time. */
function finding(memory: ItemMemory, ctx: Context): Find {
  const elsewhere = ctx.peers(({ key, id }: { key: string; id: string }) => memory.find(key, id));
  return async (key, id) => memory.find(key, id) ?? elsewhere({ key, id });
}

/** The input with whole items where references stood; nothing when there were none. */
async function whole(
  x: Arrival,
  input: unknown,
  find: Find | undefined,
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
    if (bytes > MOST_RECALLED)
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
    items.push(known ?? noItem(id, `input[${items.length}]`));
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
function refuseLasting(body: Body): void {
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

type Made = (x: Arrival, id: string) => Promise<Entry | undefined>;

/** Which provider made an answer is in the ledger, under the key that paid for it; under privacy nothing was kept anywhere. */
async function entryOf(ctx: Context, x: Arrival, id: string): Promise<Entry | undefined> {
  if (x.privacy !== "off" || !x.identity || id === "") return undefined;
  const { items } = await ctx.ledger.entries(
    { upstreamId: id, key: x.identity.id },
    { limit: 8 },
    { signal: x.signal },
  );
  return items.find((entry) => entry.target.protocol === "responses");
}

/** A continued answer goes on where it was made; a client whose answer cannot be continued is told to send everything again. */
async function modelOf(x: Arrival, body: Body, made: Made): Promise<RouteInput["model"]> {
  const model = String(body["model"]);
  const previous = body["previous_response_id"];
  if (previous == null) return model;
  const id = String(previous);
  const entry = (await made(x, id)) ?? noPrevious(id);
  const { provider, credential } = entry.target;
  if (model.startsWith(`${provider}/`))
    return { provider, credential, model: model.slice(provider.length + 1) };
  return entry.asked?.model === model ? entry.target : noPrevious(id);
}
