// An API with an OpenAPI document as a server of tools. Requests are sent to the operator's base URL
// only, with the credential of the server.
import {
  fail,
  nearest,
  readBoundedBody,
  type Context,
  type Json,
  type JsonObject,
} from "tollgate/plugin";
import {
  ServerError,
  type ListKind,
  type ServerCaller,
  type ServerRequest,
  type ToolServer,
} from "../tool-server.ts";
import { MAX_DOCUMENT_LENGTH, OpenApiDocument } from "./document.ts";
import { ArgumentError, buildRequest, type ApiRequest } from "./request.ts";
import { readToolResult, toolError } from "./result.ts";
import { createOperationTools, type OperationTool } from "./tools.ts";

/** How long a document from a URL is used until it is requested again, in milliseconds. */
const DOCUMENT_TTL_MS = 600_000;
/** Time for requesting a document, in milliseconds. */
const DOCUMENT_TIMEOUT_MS = 10_000;

/** The option `openapi` of a server. */
export interface OpenApiOptions {
  readonly document?: string;
  readonly document_url?: string;
  readonly operations?: readonly string[];
  readonly exclude?: readonly string[];
  readonly max_response_bytes: number;
}

/** Settings of a server for an API. */
export interface OpenApiServerOptions {
  /** Name under `servers:`. */
  readonly name: string;
  /** Base URL of the API. */
  readonly url: string;
  readonly openapi: OpenApiOptions;
  /** Maximum time for a response, in milliseconds. */
  readonly timeoutMs: number;
}

type Loaded = readonly OperationTool[];

/**
 * Creates the server of an API. A document from a file is read here, so that its problems reject the
 * config. A document from a URL is requested when it is needed, and again after 10 minutes.
 */
export async function createOpenApiServer(
  ctx: Pick<Context, "fetch" | "readFile">,
  options: OpenApiServerOptions,
): Promise<ToolServer> {
  const { name, url, openapi, timeoutMs } = options;
  const loadTools = await createLoader(ctx, options);
  const call = async (tool: OperationTool, input: JsonObject, caller: ServerCaller) => {
    let request: ApiRequest;
    try {
      request = buildRequest(tool.request, url, input);
    } catch (error) {
      // The model can correct its arguments.
      if (error instanceof ArgumentError) return toolError(error.message);
      throw error;
    }
    const { method, headers, body } = request;
    const response = await ctx.fetch(request.url, {
      method,
      headers: { accept: ACCEPT, ...headers, ...caller.credential.headers },
      ...(body !== undefined && { body }),
      signal: AbortSignal.any([caller.signal, AbortSignal.timeout(timeoutMs)]),
    });
    if (response.status === 401) {
      await response.body?.cancel();
      throw new ServerError("The API rejected the gateway's credential.", {
        code: INTERNAL_ERROR,
        progress: "rejected",
        status: 401,
        challenge: response.headers.get("www-authenticate") ?? "Bearer",
      });
    }
    return readToolResult(response, openapi.max_response_bytes);
  };
  return {
    name,
    describe: async () => ({
      capabilities: { tools: {} },
      serverInfo: { name, version: "1" },
    }),
    async list(kind: ListKind) {
      const tools = kind === "tools" ? await loadTools() : [];
      return { items: tools.map(toItem), bindings: new Map(tools.map(toBinding)) };
    },
    async request({ method, params }: ServerRequest, caller: ServerCaller): Promise<JsonObject> {
      if (method !== "tools/call")
        throw new ServerError("An API with an OpenAPI document has tools only.", {
          code: METHOD_NOT_FOUND,
          progress: "unsent",
        });
      const tool = (await loadTools()).find((each) => each.name === params["name"]);
      if (!tool)
        throw new ServerError("Unknown tool.", { code: INVALID_PARAMS, progress: "unsent" });
      const { arguments: input = {} } = params;
      return (await call(tool, input as JsonObject, caller)) as unknown as JsonObject;
    },
  };
}

const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;

const ACCEPT = "application/json, text/*;q=0.8, */*;q=0.1";

const toItem = ({ name, title, description, inputSchema, annotations }: OperationTool) => ({
  name,
  ...(title !== undefined && { title }),
  description,
  inputSchema,
  annotations: { ...annotations, ...(title !== undefined && { title }) } as Json,
});

/** The request of a tool, which a changed document can direct to another operation. */
const toBinding = ({ name, request }: OperationTool): [name: string, binding: JsonObject] => [
  name,
  request as unknown as JsonObject,
];

/** Returns a function that returns the tools. Its errors name the line and column. */
async function createLoader(
  ctx: Pick<Context, "fetch" | "readFile">,
  { name: server, openapi }: OpenApiServerOptions,
): Promise<() => Promise<Loaded>> {
  const { document: file, document_url: url } = openapi;
  const parse = (name: string, text: string): Loaded => {
    try {
      return createOperationTools(new OpenApiDocument(name, text), openapi, nearest);
    } catch (error) {
      return fail("invalid", `server "${server}": ${(error as Error).message}`, {
        code: "invalid_openapi",
      });
    }
  };
  if (file !== undefined) {
    const tools = parse(file, (await ctx.readFile(file)).toString("utf8"));
    return async () => tools;
  }
  let loaded: { readonly at: number; readonly tools: Promise<Loaded> } | undefined;
  return () => {
    const now = performance.now();
    if (loaded && now - loaded.at < DOCUMENT_TTL_MS) return loaded.tools;
    const before = loaded;
    const tools = requestDocument(ctx, url!).then((text) => parse(url!, text));
    const current = { at: now, tools };
    loaded = current;
    tools.catch(() => {
      // The last valid document stays in use. Without one, the next call tries again.
      if (loaded === current) loaded = before && { at: now, tools: before.tools };
    });
    return before ? tools.catch(() => before.tools) : tools;
  };
}

async function requestDocument(ctx: Pick<Context, "fetch">, url: string): Promise<string> {
  const response = await ctx.fetch(url, { signal: AbortSignal.timeout(DOCUMENT_TIMEOUT_MS) });
  const content = response.ok
    ? await readBoundedBody(response.body, MAX_DOCUMENT_LENGTH)
    : undefined;
  return content
    ? content.toString("utf8")
    : fail("upstream", `Cannot load the OpenAPI document: status ${response.status}.`, {
        code: "openapi_unavailable",
      });
}
