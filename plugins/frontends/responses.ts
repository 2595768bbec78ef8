// Frontend for responses, the endpoint that OpenAI's newer SDKs, the AI SDK, and Codex call.
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
import { failItem, failPreviousResponse, responses } from "tollgate/protocols/responses";
import {
  backgroundOption,
  createBackground,
  storedResponseRoutes,
} from "./background/background-routes.ts";
import type { FindLedgerEntry } from "./background/background-routes.ts";
import { ConversationMemory } from "./conversation-memory.ts";
import { ItemMemory, finalResponseText } from "./item-memory.ts";
import { modelToolsOption } from "./model-tools/options.ts";
import type { ToolRequest } from "./model-tools/responses/tool-request.ts";
import { ResponsesTools } from "./model-tools/responses/responses-tools.ts";
import { ResponsesSession, type ResponsesSocketOptions } from "./responses-socket.ts";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { versionedPaths, azurePaths } from "./route-paths.ts";

const MIB = 1024 * 1024;
/**
 * How long items are kept in memory, in milliseconds. Clients refer to items of the current
 * conversation.
 */
const ITEM_TTL_MS = 3_600_000;
/**
 * Maximum size of a response in the memory, in bytes. Larger responses contain images, to which
 * clients do not refer.
 */
const MAX_REMEMBERED_RESPONSE = 2 * MIB;
/**
 * Maximum size of all resolved items in a request, in bytes. A reference is a few bytes, but its
 * item may be 2 MB, so the expanded request must be bounded.
 */
const MAX_RESOLVED_BYTES = 32 * MIB;

export default defineFrontend({
  api: 1,
  name: "responses",
  summary: "Serve OpenAI responses at POST /v1/responses",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      accept: acceptOption("bearer", "api-key", "subprotocol"),
      reasoning: {
        enum: ["summary", "text"],
        default: "summary",
        description:
          "Form in which reasoning from other protocols is returned: as a summary, which " +
          "every client supports, or as reasoning text",
      },
      item_memory_mb: {
        type: "integer",
        minimum: 0,
        maximum: 4096,
        default: 64,
        description:
          "Memory per process for recent responses, for SDKs that reference items by ID. 0 " +
          "disables it",
      },
      background: backgroundOption,
      gateway_mcp: modelToolsOption,
    },
  },
  setup({ accept: schemes, reasoning, item_memory_mb, background: settings, gateway_mcp }, ctx) {
    const background = settings && createBackground(settings, ctx);
    const gatewayTools = gateway_mcp && new ResponsesTools(ctx, gateway_mcp);
    const memory = createItemMemory(item_memory_mb, ctx);
    const find: FindItem | undefined = memory && createItemFinder(memory, ctx);
    const conversations = createConversationMemory(item_memory_mb, ctx);
    const made = (x: RequestHead, id: string) => findLedgerEntry(ctx, x, id);
    const readInput = async (x: RequestHead, body: Body): Promise<RouteInput> => {
      rejectStoredContent(body);
      if (body["background"] === true)
        fail("invalid", "background is not supported over a WebSocket. Send an HTTP request.", {
          param: "background",
          code: "unsupported_parameter",
        });
      const { whole, items, toolRequest } = await readTools(x, body);
      if (!toolRequest) return readForeground(x, whole, items);
      if (toolRequest.servers.length > 0) rejectOverSocket();
      return readToolInput(x, whole, toolRequest, { tools: gatewayTools!, readForeground });
    };
    /**
     * Reads the request for servers of the gateway. References are resolved first, because they may
     * name items that only the gateway knows. Returns the body with these items.
     */
    const readTools = async (x: RequestHead, body: Body) => {
      const items = gatewayTools && (await resolveReferences(x, body["input"], find));
      const whole = items ? { ...body, ...items } : body;
      return { whole, items, toolRequest: gatewayTools?.read(x, whole) };
    };
    /** Returns the model, and the provider's ID of a background response that is continued. */
    const resolvePrevious = async (x: RequestHead, body: Body) => {
      const previous = body["previous_response_id"];
      const known = previous == null ? undefined : await background?.find(x, String(previous));
      const id = known?.upstreamId ?? previous;
      const upstreamId =
        (id == null ? undefined : await gatewayTools?.findUpstreamId(x, String(id))) ??
        known?.upstreamId;
      const edits = upstreamId === undefined ? undefined : { previous_response_id: upstreamId };
      return { model: await resolveModel(x, { ...body, ...edits }, made), edits };
    };
    const readForeground = async (
      x: RequestHead,
      body: Body,
      resolved?: Body,
    ): Promise<RouteInput> => {
      const { model, edits } = await resolvePrevious(x, body);
      const items = resolved ?? (await resolveReferences(x, body["input"], find));
      return {
        model,
        edits: edits || items ? { ...edits, ...items } : undefined,
        record:
          memory && body["store"] !== false && x.privacy === "off"
            ? {
                maxBytes: MAX_REMEMBERED_RESPONSE,
                onRecorded: (got) => rememberResponse(memory, x, got),
              }
            : undefined,
      };
    };
    const readHttpInput = async (x: RequestHead, body: Body): Promise<RouteInput> => {
      rejectStoredContent(body);
      const { whole, items, toolRequest } = await readTools(x, body);
      if (toolRequest)
        return readToolInput(x, whole, toolRequest, {
          tools: gatewayTools!,
          background,
          memory,
          readForeground,
        });
      if (body["background"] !== true) return readForeground(x, whole, items);
      if (!background) return rejectBackground();
      const { edits, ...input } = await readForeground(x, whole, items);
      const run = background.begin(x, body);
      return { ...input, ...run, edits: { ...edits, ...run.edits } };
    };
    return {
      protocol: responses({ reasoning }),
      jobKinds: background?.jobKinds ?? [],
      extractCredential: (headers) => extractCredential(headers, schemes),
      routes: [
        {
          method: "POST",
          path: [...versionedPaths("/responses"), ...azurePaths("/responses")],
          actionType: "generate",
          readInput: readHttpInput,
        },
        {
          method: "POST",
          path: [
            ...versionedPaths("/responses/input_tokens"),
            ...azurePaths("/responses/input_tokens"),
          ],
          actionType: "count",
          async readInput(x, body) {
            const { whole, items, toolRequest } = await readTools(x, body);
            const own = toolRequest && (await gatewayTools!.expand(x, whole, toolRequest));
            const known = items ?? (await resolveReferences(x, body["input"], find));
            return {
              model: await resolveModel(x, body, made),
              edits: { ...known, ...own },
              stream: false,
            };
          },
        },
        ...storedResponseRoutes({ background, findEntry: made }),
      ],
      sockets: [
        {
          path: [...versionedPaths("/responses"), ...azurePaths("/responses")],
          subprotocols: ["responses"],
          actionType: "generate",
          openSession: (x) => new ResponsesSession(x, { ...conversations, readInput }),
        },
      ],
    };
  },
});

/** Returns how a request that concerns MCP servers of the gateway is sent and answered. */
async function readToolInput(
  x: RequestHead,
  body: Body,
  request: ToolRequest,
  of: {
    readonly tools: ResponsesTools;
    readonly readForeground: (x: RequestHead, body: Body) => Promise<RouteInput>;
    readonly background?: ReturnType<typeof createBackground> | undefined;
    readonly memory?: ItemMemory | undefined;
  },
): Promise<RouteInput> {
  const { tools, memory } = of;
  const own = tools.editsOf(request, body);
  const { edits, record, ...input } = await of.readForeground(x, { ...body, ...own });
  const run =
    body["background"] === true ? (of.background ?? rejectBackground()).begin(x, body) : undefined;
  const all = { ...own, ...edits, ...run?.edits };
  if (request.servers.length === 0) return { ...input, ...run, record, edits: all };
  const onEnd = (response: JsonObject) => {
    const recorded = Buffer.from(JSON.stringify(response));
    if (record && memory && recorded.length <= MAX_REMEMBERED_RESPONSE)
      rememberResponse(memory, x, { contentType: "application/json", body: recorded });
  };
  const streamed = (run ? { ...body, stream: true } : body) as JsonObject;
  const answer = () => tools.respond(x, streamed, request, onEnd);
  return { ...input, ...run, edits: all, answer };
}

const rejectOverSocket = (): never =>
  fail(
    "unsupported",
    "MCP servers of this gateway are not available over a WebSocket. Send an HTTP request.",
    {
      param: "tools",
      code: "unsupported_parameter",
    },
  );

function createItemMemory(mb: number, ctx: Context): ItemMemory | undefined {
  if (mb === 0) return undefined;
  const bounds = { bytes: mb * MIB, bytesPerKey: Math.min(mb, 8) * MIB, maxAgeMs: ITEM_TTL_MS };
  const memory = ctx.shared(`items ${mb}`, () => new ItemMemory(bounds));
  ctx.runEvery(60_000, () => memory.removeExpired());
  return memory;
}

/**
 * Creates the memory for conversations of WebSocket clients. It has the same limits as the memory
 * for items.
 */
function createConversationMemory(
  mb: number,
  ctx: Context,
): Pick<ResponsesSocketOptions, "memory" | "find"> {
  if (mb === 0) return { memory: undefined, find: undefined };
  const bounds = { bytes: mb * MIB, bytesPerKey: Math.min(mb, 8) * MIB, maxAgeMs: ITEM_TTL_MS };
  const memory = ctx.shared(`conversations ${mb}`, () => new ConversationMemory(bounds));
  ctx.runEvery(60_000, () => memory.removeExpired());
  const elsewhere = ctx.createPeerQuery(
    "conversation",
    ({ key, id }: { key: string; id: string }) => memory.find(key, id),
  );
  return {
    memory,
    find: async (key, id, connection) => memory.find(key, id, connection) ?? elsewhere({ key, id }),
  };
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

/**
 * Creates a function that finds items in this process, or else in the process that served the key
 * before.
 */
function createItemFinder(memory: ItemMemory, ctx: Context): FindItem {
  const elsewhere = ctx.createPeerQuery("item", ({ key, id }: { key: string; id: string }) =>
    memory.find(key, id),
  );
  return async (key, id) => memory.find(key, id) ?? elsewhere({ key, id });
}

/**
 * Returns the input with references replaced by items, or undefined if it contains no references.
 */
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
      fail("too_large", "The referenced items exceed 32 MiB in total.", {
        param: "input",
        code: "request_too_large",
      });
    return item;
  };
  // The items are resolved one after the other, because the first unknown item ends the request.
  for (const item of input as readonly JsonObject[]) {
    const id = String(item["id"]);
    const known = !isReference(item) ? item : x.privacy === "off" ? await recall(id) : undefined;
    items.push(known ?? failItem(id, `input[${items.length}]`));
  }
  return { input: items };
}

/** Whether an item is a reference. The type may be missing. The item then has only an ID. */
function isReference(item: JsonObject): boolean {
  const type = item["type"] ?? undefined;
  if (type === undefined) return item["role"] === undefined && typeof item["id"] === "string";
  return type === "item_reference";
}

const rejectBackground = (): never =>
  fail(
    "invalid",
    "background is not enabled on this gateway. Use stream: true, or ask the operator to set background of the frontend.",
    { param: "background", code: "unsupported_parameter" },
  );

/** Rejects a stored conversation, which every client could find. No provider setting makes it safe. */
function rejectStoredContent(body: Body): void {
  if (body["conversation"] != null)
    fail("invalid", "conversation is not supported. Send the whole conversation in input.", {
      param: "conversation",
      code: "unsupported_parameter",
    });
}

/**
 * Returns the ledger entry of a response, which contains its provider. Only the key that paid for
 * the response can find it. Under Service-ZDR, nothing was stored, so nothing is returned.
 */
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

/**
 * Sends a continued response to the provider that created it. If that is not possible, the client
 * receives an error that asks it to send the whole conversation again.
 */
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
