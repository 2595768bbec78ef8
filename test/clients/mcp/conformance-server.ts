// An MCP server with the tools, resources, and prompts that the public conformance suite calls, on
// the official SDK.
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { installed, type Package } from "../install.ts";

type Json = Record<string, any>;

/** One pixel, and a sound without samples. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

const text = (of: string) => ({ type: "text", text: of });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const embedded = {
  type: "resource",
  resource: {
    uri: "test://embedded-resource",
    mimeType: "text/plain",
    text: "This is an embedded resource content.",
  },
};

interface Call {
  readonly args: Json;
  readonly token: string | number | undefined;
  notify(method: string, params: Json): Promise<void>;
  ask(method: string, params: Json): Promise<Json>;
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const enumSchema = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
    titledSingle: {
      type: "string",
      oneOf: [
        { const: "value1", title: "First Option" },
        { const: "value2", title: "Second Option" },
      ],
    },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2"],
      enumNames: ["Option One", "Option Two"],
    },
    untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2"] } },
    titledMulti: {
      type: "array",
      items: { anyOf: [{ const: "value1", title: "First Choice" }] },
    },
  },
  required: [],
};

const defaultsSchema = {
  type: "object",
  properties: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
  required: [],
};

const elicit =
  (message: string, requestedSchema: Json) =>
  async ({ ask }: Call) => {
    const { action, content } = await ask("elicitation/create", { message, requestedSchema });
    return {
      content: [
        text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`),
      ],
    };
  };

const TOOLS: Readonly<Record<string, (call: Call) => Promise<Json> | Json>> = {
  test_simple_text: () => ({ content: [text("This is a simple text response for testing.")] }),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }] }),
  test_embedded_resource: () => ({ content: [embedded] }),
  test_multiple_content_types: () => ({
    content: [text("Multiple content types test:"), image, embedded],
  }),
  async test_tool_with_logging({ notify }) {
    for (const data of [
      "Tool execution started",
      "Tool processing data",
      "Tool execution completed",
    ]) {
      await notify("notifications/message", { level: "info", data });
      await sleep(20);
    }
    return { content: [text("Tool with logging executed successfully")] };
  },
  async test_tool_with_progress({ notify, token }) {
    for (const progress of [0, 50, 100]) {
      if (token !== undefined)
        await notify("notifications/progress", { progressToken: token, progress, total: 100 });
      await sleep(20);
    }
    return { content: [text(String(token))] };
  },
  test_error_handling: () => {
    throw new Error("This tool intentionally returns an error for testing");
  },
  async test_sampling({ args, ask }) {
    const { content } = await ask("sampling/createMessage", {
      messages: [{ role: "user", content: text(String(args["prompt"])) }],
      maxTokens: 100,
    });
    return { content: [text(`LLM response: ${content.text}`)] };
  },
  test_elicitation: (call) =>
    elicit(String(call.args["message"]), {
      type: "object",
      properties: { username: { type: "string" }, email: { type: "string" } },
      required: ["username", "email"],
    })(call),
  test_elicitation_sep1034_defaults: elicit("Defaults", defaultsSchema),
  test_elicitation_sep1330_enums: elicit("Enums", enumSchema),
  json_schema_2020_12_tool: () => ({ content: [text("ok")] }),
};

const SCHEMA_2020_12 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
  additionalProperties: false,
};

const user = (content: Json) => ({ role: "user", content });
const PROMPTS: Readonly<Record<string, { readonly args: string[]; get(args: Json): Json[] }>> = {
  test_simple_prompt: { args: [], get: () => [user(text("This is a simple prompt for testing."))] },
  test_prompt_with_arguments: {
    args: ["arg1", "arg2"],
    get: ({ arg1, arg2 }) => [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
  },
  test_prompt_with_embedded_resource: {
    args: ["resourceUri"],
    get: ({ resourceUri }) => [
      user({
        type: "resource",
        resource: { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content" },
      }),
      user(text("Please process the embedded resource above.")),
    ],
  },
  test_prompt_with_image: {
    args: [],
    get: () => [user(image), user(text("Please analyze the image above."))],
  },
};

const RESOURCES: Readonly<Record<string, Json>> = {
  "test://static-text": {
    mimeType: "text/plain",
    text: "This is the content of the static text resource.",
  },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched resource content" },
};

const readResource = (uri: string): Json => {
  const id = /^test:\/\/template\/(.+)\/data$/.exec(uri)?.[1];
  const found =
    RESOURCES[uri] ??
    (id && {
      mimeType: "application/json",
      text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
    });
  if (!found) throw new Error("Unknown resource");
  return { contents: [{ uri, ...found }] };
};

/** Handlers of the requests of clients, by the name of the SDK's schema. */
const HANDLERS: Readonly<Record<string, (params: Json, call: Omit<Call, "args">) => unknown>> = {
  ListToolsRequestSchema: () => ({
    tools: Object.keys(TOOLS).map((name) => ({
      name,
      description: `Tool ${name}`,
      inputSchema: name === "json_schema_2020_12_tool" ? SCHEMA_2020_12 : { type: "object" },
    })),
  }),
  async CallToolRequestSchema({ name, arguments: args = {} }, call) {
    try {
      return await TOOLS[name]!({ ...call, args });
    } catch (error) {
      return { isError: true, content: [text((error as Error).message)] };
    }
  },
  ListResourcesRequestSchema: () => ({
    resources: Object.entries(RESOURCES).map(([uri, { mimeType }]) => ({
      uri,
      name: uri,
      mimeType,
      description: uri,
    })),
  }),
  ListResourceTemplatesRequestSchema: () => ({
    resourceTemplates: [
      { uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" },
    ],
  }),
  ReadResourceRequestSchema: ({ uri }) => readResource(String(uri)),
  SubscribeRequestSchema: () => ({}),
  UnsubscribeRequestSchema: () => ({}),
  ListPromptsRequestSchema: () => ({
    prompts: Object.entries(PROMPTS).map(([name, { args }]) => ({
      name,
      description: name,
      arguments: args.map((arg) => ({ name: arg, description: arg, required: true })),
    })),
  }),
  GetPromptRequestSchema: ({ name, arguments: args = {} }) => ({
    messages: PROMPTS[name]!.get(args),
  }),
  CompleteRequestSchema: () => ({ completion: { values: ["test"], total: 1, hasMore: false } }),
  SetLevelRequestSchema: () => ({}),
};

const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  logging: {},
  completions: {},
};

/** Starts the server on the SDK in `of`. */
export async function startConformanceServer(
  of: Package,
): Promise<AsyncDisposable & { readonly url: string }> {
  const folder = dirname(await installed(of));
  const load = (path: string): Promise<any> =>
    import(pathToFileURL(join(folder, "dist/esm", path)).href);
  const { Server } = await load("server/index.js");
  const { StreamableHTTPServerTransport } = await load("server/streamableHttp.js");
  const types = await load("types.js");
  const transports = new Map<string, any>();
  const createSession = () => {
    const server = new Server(
      { name: "conformance", version: "1" },
      { capabilities: CAPABILITIES },
    );
    for (const [schema, handle] of Object.entries(HANDLERS))
      server.setRequestHandler(types[schema], (request: Json, extra: Json) =>
        handle(request["params"] ?? {}, {
          token: request["params"]?.["_meta"]?.["progressToken"],
          notify: (method, params) => extra["sendNotification"]({ method, params }),
          ask: (method, params) =>
            extra["sendRequest"](
              { method, params },
              method === "sampling/createMessage"
                ? types.CreateMessageResultSchema
                : types.ElicitResultSchema,
            ),
        }),
      );
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id: string) => void transports.set(id, transport),
    });
    return server.connect(transport).then(() => transport);
  };
  const readBody = async (req: IncomingMessage): Promise<unknown> => {
    const pieces: Buffer[] = [];
    for await (const piece of req) pieces.push(piece as Buffer);
    return pieces.length > 0 ? JSON.parse(Buffer.concat(pieces).toString()) : undefined;
  };
  const server = createServer((req, res) => {
    void (async () => {
      const body = await readBody(req);
      const session = transports.get(String(req.headers["mcp-session-id"]));
      const transport = session ?? (await createSession());
      await transport.handleRequest(req, res, body);
    })().catch((error: unknown) => res.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
