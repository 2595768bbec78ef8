// Generates docs/reference/http-api: the routes of the frontends, the headers, and the endpoints of
// the admin API, from the routes and the OpenAPI description that the gateway serves.
import { builtin } from "../../plugins/index.ts";
import { COMMAND_SPECS, type CommandName } from "../../src/admin/schema/command-specs.ts";
import { createOpenApi } from "../../src/admin/http/openapi.ts";
import { DEFAULT_FRONTENDS } from "../../src/config/schema/config-schema.ts";
import { getValidator, type Schema } from "../../src/config/schema-dialect.ts";
import { API_PATH, OIDC_PATH, OPENAPI_PATH } from "../../src/runtime/access/principal.ts";
import type { Definition } from "../../src/plugin/define.ts";
import type { Frontend, Route, SocketRoute } from "../../src/plugin/frontend.ts";
import { createTestContext } from "../../src/testing/context.ts";
import { code, listed, page, type ReferencePage, sentence, table } from "./markdown.ts";

/**
 * Descriptions of the routes, by method and first path. A frontend with a single route may describe
 * it in its summary instead.
 */
const ROUTES: Readonly<Record<string, string>> = {
  "POST /v1/chat/completions": "Creates a chat completion in OpenAI's format",
  "POST /v1/completions": "Creates a text completion in OpenAI's legacy format",
  "POST /v1/embeddings": "Creates embeddings in OpenAI's format",
  "POST /v2/embed": "Creates embeddings in Cohere's format",
  "POST /v1beta/**:target":
    "Calls a model in Gemini's format. The last part of the path is the model and the method, such as `models/<model>:generateContent`",
  "GET /v1beta/models": "Lists the models in Gemini's format",
  "GET /v1beta/models/**:id": "Returns one model in Gemini's format",
  "GET /.well-known/oauth-authorization-server": "Returns the endpoints of the sign-in (RFC 8414)",
  "POST /oauth/device_authorization":
    "Starts the sign-in of a device (RFC 8628). The body is a form",
  "POST /oauth/token": "Returns the tokens of a device, or renews them. The body is a form",
  "POST /oauth/revoke": "Ends the session of a token (RFC 7009). The body is a form",
  "GET /oauth/callback": "Handles the return of a browser from the identity provider",
  "GET /protocol": "Describes the endpoints of the gateway for signed-in clients, in Markdown",
  "GET /managed/settings": "Returns the settings of Claude Code for the person's account",
  "POST /v1/metrics": "Forwards metrics to the operator's collector, in OTLP over HTTP",
  "POST /v1/logs": "Forwards log records to the operator's collector, in OTLP over HTTP",
  "POST /v1/traces": "Forwards spans to the operator's collector, in OTLP over HTTP",
  "GET /device": "Shows the page on which a person enters the code of a device",
  "POST /device": "Sends the browser to the identity provider",
  "POST /device/approve": "Approves the device",
  "POST /device/deny": "Denies the device",
  "POST /v1/files": "Stores a file, from a form, in the format of OpenAI or Anthropic",
  "GET /v1/files": "Lists the files of the key's account",
  "GET /v1/files/:id": "Returns one file",
  "DELETE /v1/files/:id": "Deletes a file and its content",
  "GET /v1/files/:id/content": "Returns the content of a file",
  "POST /v1/uploads": "Begins the upload of a large file in OpenAI's format",
  "POST /v1/uploads/:id/parts": "Adds a part to an upload, from a form",
  "POST /v1/uploads/:id/complete": "Joins the parts of an upload into a file",
  "POST /v1/uploads/:id/cancel": "Cancels an upload and deletes its parts",
  "POST /mcp":
    "Receives one message of the Model Context Protocol. `/mcp/:name` serves one server or set",
  "GET /mcp": "Streams the events of an MCP session",
  "DELETE /mcp": "Ends an MCP session",
  "POST /v1/batches": "Creates a batch from a file of requests, in OpenAI's format",
  "GET /v1/batches": "Lists the batches of the key's account",
  "GET /v1/batches/:id": "Returns one batch",
  "POST /v1/batches/:id/cancel": "Cancels a batch. Requests that ran are billed",
  "POST /v1/videos": "Creates a video, from JSON or a form, in OpenAI's format",
  "GET /v1/videos": "Lists the videos of the key's account",
  "GET /v1/videos/:id": "Returns one video",
  "DELETE /v1/videos/:id": "Deletes a video that has ended, here and at its provider",
  "GET /v1/videos/:id/content": "Returns the content of a video, or a preview",
  "POST /v1/videos/:id/remix": "Creates a video that changes another one",
  "POST /v1/messages/batches": "Creates a batch of messages, in Anthropic's format",
  "GET /v1/messages/batches": "Lists the message batches of the key's account",
  "GET /v1/messages/batches/:id": "Returns one message batch",
  "DELETE /v1/messages/batches/:id": "Deletes a message batch that has ended, with its results",
  "POST /v1/messages/batches/:id/cancel": "Cancels a message batch. Requests that ran are billed",
  "GET /v1/messages/batches/:id/results": "Returns the results of a message batch that has ended",
  "POST /v1/images/generations": "Creates images in OpenAI's format",
  "POST /v1/images/edits": "Edits images, from JSON or a form, in OpenAI's format",
  "POST /v1/images/variations": "Always rejected. No model supports variations",
  "GET /v1/models": "Lists the models that the key may use",
  "GET /v1/models/**:id": "Returns one model",
  "POST /v1/messages": "Creates a message in Anthropic's format",
  "POST /v1/messages/count_tokens": "Counts the input tokens of a message",
  "HEAD /": "Returns 200, for clients that test the connection",
  "POST /v1/rerank": "Ranks documents in the format of Cohere and Jina",
  "POST /voyage/v1/rerank": "Ranks documents in Voyage's format",
  "POST /v1/responses": "Creates a response in OpenAI's Responses format",
  "POST /v1/responses/input_tokens": "Counts the input tokens of a response",
  "GET /v1/responses/:id": "Returns a background response, or a stored response from its provider",
  "DELETE /v1/responses/:id": "Deletes a background response, or a stored response at its provider",
  "POST /v1/responses/:id/cancel": "Cancels a background response",
  "GET /v1/responses/:id/input_items": "Lists the input items of a stored response",
  "POST /v1/audio/speech": "Creates speech in OpenAI's format",
  "POST /v1/audio/transcriptions": "Transcribes audio, from a form",
  "POST /v1/audio/translations": "Transcribes audio into English, from a form",
  "GET /v1/usage": "Returns the usage and limits of the key",
  "POST /v1/realtime/client_secrets":
    "Creates a client secret, with which a browser connects to `/v1/realtime`",
  "POST /v1/realtime/sessions": "Always rejected. Use `/v1/realtime/client_secrets`",
  "WebSocket /v1/responses": "Creates responses in OpenAI's Responses format, one after the other",
  "WebSocket /v1/realtime":
    "Holds a conversation in the format of OpenAI's Realtime API. `model` is in the query",
  "WebSocket /ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent":
    "Holds a conversation in the format of Google's Live API. The first message names the model",
};
const DEPLOYMENT = "/openai/deployments/";
const BODIES = {
  json: "JSON",
  multipart: "Form",
  either: "JSON or form",
  bytes: "Bytes",
  parts: "Form",
  stream: "JSON",
} as const;

interface ServedRoute {
  readonly frontend: string;
  /** Summary of the frontend, if this is its only route. */
  readonly summary?: string | undefined;
  readonly route: Route | (SocketRoute & { readonly method: "WebSocket" });
  readonly paths: readonly string[];
}

/** Options of frontends that cannot be mounted without. */
const REQUIRED: Readonly<Record<string, object>> = {
  "claude-gateway": {
    public_url: "https://gateway.example.com",
    oidc: { issuer: "https://login.example.com", client_id: "tollgate" },
  },
};

async function routesOf(name: string): Promise<ServedRoute[]> {
  const { default: definition } = (await builtin.frontend[
    name as keyof typeof builtin.frontend
  ]()) as unknown as { default: Definition };
  const { value } = getValidator((definition.options ?? { type: "object" }) as Schema)(
    REQUIRED[name] ?? {},
  );
  const test = createTestContext();
  const setup = definition.setup as (options: never, ctx: never) => Frontend | Promise<Frontend>;
  const { routes, sockets = [] } = await setup(value as never, test.ctx as never);
  const opened = sockets.map((socket) => ({ ...socket, method: "WebSocket" as const }));
  const all = [...routes, ...opened];
  return all.map((route) => ({
    frontend: name,
    summary: all.length === 1 ? definition.summary.replace(/^Serve /, "Serves ") : undefined,
    route,
    paths: [route.path].flat(),
  }));
}

function routeEntry(
  { frontend, summary, route, paths }: ServedRoute,
  deployments: readonly string[],
): string {
  const [first = "", ...others] = paths;
  const about = ROUTES[`${route.method} ${first}`] ?? summary;
  if (about === undefined) throw new Error(`no description of ${route.method} ${first}`);
  const body = "body" in route && route.body !== undefined ? route.body : "json";
  return [
    `## ${code(`${route.method} ${first}`)}`,
    `${sentence(about)} Frontend: ${code(frontend)}${DEFAULT_FRONTENDS.includes(frontend) ? "" : ", which is not mounted by default"}.${route.method === "POST" ? ` Body: ${BODIES[body]}.` : ""}`,
    [...others, ...deployments].length > 0
      ? `Other paths: ${[...others, ...deployments].map(code).join(", ")}.`
      : "",
  ]
    .filter(Boolean)
    .join("\n\n");
}

/** Frontend that has its own page. */
const SIGN_IN = "claude-gateway";

async function signInPage(): Promise<ReferencePage> {
  const routes = await routesOf(SIGN_IN);
  return page("http-api/sign-in.md", [
    "# Sign-in endpoints",
    "This page is for authors of clients. It lists the routes of the frontend `claude-gateway`, which is described in [Sign in people with Claude Code](../../guides/sign-in.md).",
    "```sh\ncurl -s https://gateway.example.com/oauth/device_authorization -d surface=my_client\n```",
    ...routes.map((route) => routeEntry(route, [])),
  ]);
}

/** Frontends whose routes concern jobs, on their own page. */
const JOBS: readonly string[] = ["jobs", "videos"];

async function jobPage(): Promise<ReferencePage> {
  const routes = (await Promise.all(JOBS.map(routesOf))).flat();
  return page("http-api/jobs.md", [
    "# Job endpoints",
    "This page is for application developers. It lists the routes of files, batches, and videos, which [Files and batches](../../guides/endpoints.md#files-and-batches) and [Videos](../../guides/videos.md) describe.",
    '```sh\ncurl -s http://127.0.0.1:8787/v1/videos -H "authorization: Bearer $KEY"\n```',
    ...routes.map((route) => routeEntry(route, [])),
  ]);
}

async function endpointPage(): Promise<ReferencePage> {
  const names = Object.keys(builtin.frontend).filter(
    (name) => name !== SIGN_IN && !JOBS.includes(name),
  );
  const all = (await Promise.all(names.map(routesOf))).flat();
  const isDeployment = ({ paths }: ServedRoute) => paths[0]!.startsWith(DEPLOYMENT);
  const suffix = (path: string) => path.replace(/^.*\/:model|^\/v1/, "");
  const entries = all
    .filter((one) => !isDeployment(one))
    .map((one) => {
      const same = all.filter(
        (other) => isDeployment(other) && suffix(other.paths[0]!) === suffix(one.paths[0]!),
      );
      return routeEntry(
        one,
        same.flatMap(({ paths }) => paths),
      );
    });
  return page("http-api/endpoints.md", [
    "# Client endpoints",
    "This page is for application developers. It lists the routes of the built-in frontends. Each route accepts the format of its vendor's API, and any model of any provider. Only Realtime and Live sockets need a provider with the same protocol.",
    '```sh\ncurl -s http://127.0.0.1:8787/v1/chat/completions \\\n  -H "authorization: Bearer $KEY" -H \'content-type: application/json\' \\\n  -d \'{"model":"demo/echo","messages":[{"role":"user","content":"Hello, gate."}]}\'\n```',
    "In a path, `:name` is one segment and `**:name` is the rest of the path. `/openai/deployments/…` is the form of Azure's older clients, where the deployment is the model.",
    ...entries,
  ]);
}

/** Endpoints that the gateway serves itself. */
const OWN_ENDPOINTS: readonly (readonly string[])[] = [
  ["`GET /healthz`, `GET /health`", "Clients, admin", "200 while the process runs"],
  ["`GET /readyz`", "Clients, admin", "200 if requests are served, otherwise 503 with the state"],
  ["`GET /`", "Clients", "The name of the service"],
  ["`GET /files/<name>`", "Clients", "A generated image. The signed URL is the permission"],
  ["`GET /metrics`", "Admin", "Metrics for Prometheus, if the observer `metrics` is mounted"],
  ["`GET /console`", "Admin", "The console, if the observer `console` is mounted"],
  [code(`GET ${OPENAPI_PATH}`), "Admin", "The OpenAPI 3.1 description of the admin API"],
  [code(`GET ${OIDC_PATH}`), "Admin", "Sign-in with the identity provider of `admin.oidc`"],
];

/** Headers that the gateway reads from a request. */
export const REQUEST_HEADERS: readonly (readonly [name: string, about: string])[] = [
  ["authorization", "`Bearer <key>`: the API key"],
  ["x-api-key", "The API key, as Anthropic's clients send it"],
  ["api-key", "The API key, as Azure's clients send it"],
  ["x-goog-api-key", "The API key, as Google's clients send it"],
  [
    "x-tollgate-key",
    "The API key, if the other headers contain the client's own credential for a provider",
  ],
  ["service-zdr", "Required privacy: `required`, `strict`, or `off`"],
  ["idempotency-key", "Unique ID of the request, so that a retry is not billed twice"],
  ["x-request-id", "Your own ID of the request, which logs and records contain"],
  ["x-tollgate-strict", "`true`: reject a request that cannot be translated exactly"],
  [
    "x-tollgate-cost",
    "`true`: add the cost to the usage of the response, if `response_headers` allows it",
  ],
  ["traceparent", "Trace context, which the spans of the gateway continue"],
  ["tracestate", "Vendor data of the trace context"],
  ["anthropic-version", "Version of Anthropic's API that the client uses"],
  ["anthropic-beta", "Beta features of Anthropic's API"],
  ["anthropic-*", "Other headers of Anthropic's API, except credentials and accounts"],
  ["x-claude-code-*", "Session, agent, and request class of Claude Code"],
];

/** Headers that the gateway adds to a response. */
export const RESPONSE_HEADERS: readonly (readonly [name: string, when: string, about: string])[] = [
  ["x-request-id", "Always", "ID of the request in logs, records, and the ledger"],
  ["request-id", "Messages", "The same ID, as Anthropic's clients read it"],
  ["service-zdr", "Always", "`enforced` or `not-requested`"],
  ["service-zdr-policy", "Always", "Data policy of the provider that was called last, or `none`"],
  ["x-tollgate-generation", "Always", "Number of the config generation that served the request"],
  ["x-tollgate-warnings", "Translated requests", "Fields that were dropped or approximated"],
  ["x-tollgate-attempts", "`response_headers`, token counts", "Number of attempts"],
  ["x-tollgate-provider", "`response_headers`, provider errors", "Provider that was called last"],
  ["x-tollgate-cost", "`response_headers`", "Total cost of all attempts, in US dollars"],
  ["x-tollgate-budget", "`response_headers`", "Budget with the least remaining amount"],
  ["x-tollgate-scope", "Scopes with `warn`", "Scopes with a limit that is used up"],
  ["x-tollgate-downgrade", "Downgrades", "Scope, requested model, and the model that serves it"],
  ["server-timing", "`response_headers`", "Time in the gateway and at the provider, in ms"],
  ["x-tollgate-estimated", "Token counts", "`input_tokens` if the gateway estimated the count"],
  ["retry-after", "Errors", "Time after which a retry may succeed, in seconds"],
  ["retry-after-ms", "Errors", "Time after which a retry may succeed, in milliseconds"],
  ["x-ratelimit-limit-requests", "Keys with limits", "Maximum number of requests"],
  ["x-ratelimit-remaining-requests", "Keys with limits", "Remaining number of requests"],
  ["x-ratelimit-reset-requests", "Keys with limits", "Time until the limit resets"],
  ["x-ratelimit-limit-tokens", "Keys with limits", "Maximum number of tokens"],
  ["x-ratelimit-remaining-tokens", "Keys with limits", "Remaining number of tokens"],
  ["x-ratelimit-reset-tokens", "Keys with limits", "Time until the limit resets"],
];

const headerPage = (): ReferencePage =>
  page("http-api/headers.md", [
    "# HTTP headers",
    "This page is for application developers. It lists the headers that the gateway reads and sends.",
    "## Request headers",
    "Headers that are not listed are forwarded to the provider only if its protocol defines them.",
    table(
      ["Header", "Meaning"],
      REQUEST_HEADERS.map(([name, about]) => [code(name), about]),
    ),
    "## Response headers",
    'The column "Sent" states when a header is sent. `response_headers` means that the key [`response_headers`](../configuration/requests.md#response_headers) must list it.',
    table(
      ["Header", "Sent", "Meaning"],
      RESPONSE_HEADERS.map(([name, when, about]) => [code(name), when, about]),
    ),
    "A streaming response starts before its cost is known, so `x-tollgate-cost` is sent only with non-streaming responses and errors.",
    "## Form of `x-tollgate-budget`",
    "The header contains the remaining amount, the limit, its period, and the scope. Accounts with `disclose_limits: hidden` are left out.",
    "```text\nleft=4.2, max=5, per=month, reset=2026-12-01T00:00:00.000Z, of=account:acme\n```",
    "## Form of `x-tollgate-warnings`",
    "Each warning has a code and the field that it concerns. If the header would be longer than 1 KB, its last item is the number of omitted warnings.",
    "```text\nunsupported_parameter;field=logit_bias, more;count=3\n```",
  ]);

interface AdminPage {
  readonly slug: string;
  readonly title: string;
  readonly about: string;
  /** First words of the commands. */
  readonly tags: readonly string[];
}

const ADMIN_PAGES: readonly AdminPage[] = [
  {
    slug: "admin-gateway",
    title: "Admin API: gateway and config",
    about: "endpoints for the gateway, its config, and its plugins",
    tags: [
      "status",
      "fleet",
      "attention",
      "stats",
      "reload",
      "config",
      "plugins",
      "explain",
      "console",
    ],
  },
  {
    slug: "admin-models",
    title: "Admin API: providers and models",
    about: "endpoints for providers, models, and data policies",
    tags: ["providers", "models", "policy"],
  },
  {
    slug: "admin-keys",
    title: "Admin API: keys and accounts",
    about: "endpoints for API keys and accounts",
    tags: ["keys", "accounts", "scopes"],
  },
  {
    slug: "admin-access",
    title: "Admin API: admins and audit",
    about: "endpoints for admin tokens, sessions, and the audit log",
    tags: ["admins", "sessions", "audit"],
  },
  {
    slug: "admin-requests",
    title: "Admin API: requests and usage",
    about: "endpoints for requests, open WebSockets, jobs, and usage",
    tags: ["requests", "sockets", "jobs", "usage"],
  },
  {
    slug: "admin-ledger",
    title: "Admin API: ledger",
    about: "endpoints for the ledger, backups, and erasure",
    tags: ["ledger", "backup", "erase"],
  },
];

const typeOf = (schema: Schema): string => {
  const {
    type,
    enum: values,
    items,
  } = schema as {
    type?: string | string[];
    enum?: unknown[];
    items?: Schema;
  };
  if (values) return values.map((each) => code(String(each))).join(", ");
  const names = [type ?? "any"].flat().map((each) => (each === "string" ? "text" : each));
  return names.includes("array") && items ? `list of ${typeOf(items)}` : names.join(" or ");
};

function adminEntry(name: CommandName, methods: readonly string[], path: string): string {
  const { summary, input, output, role, worksOffline, cli } = COMMAND_SPECS[name];
  const { properties = {}, required = [] } = input as {
    properties?: Record<string, Schema>;
    required?: readonly string[];
  };
  const rows = Object.entries(properties).map(([member, schema]) => [
    code(member),
    `${typeOf(schema)}${required.includes(member) ? ", required" : ""}`,
    String(schema["description"] ?? ""),
  ]);
  const members = ((output as Schema)["required"] ?? []) as readonly string[];
  return [
    `## ${code(`${methods.join(", ")} ${path}`)}`,
    `${sentence(summary)} Minimum role: ${code(role)}.${cli === undefined ? "" : ` Same as ${code(`tollgate ${cli.words}`)}.`}${worksOffline ? "" : " Requires a running gateway."}`,
    rows.length > 0 ? table(["Input", "Type", "Description"], rows) : "",
    members.length > 0 ? `Result: an object with ${listed(members.map(code))}.` : "",
  ]
    .filter(Boolean)
    .join("\n\n");
}

function adminPages(): ReferencePage[] {
  const names = Object.keys(COMMAND_SPECS) as CommandName[];
  const { paths } = createOpenApi(
    names.map((name) => ({ name, spec: COMMAND_SPECS[name] })) as never,
  ) as { paths: Record<string, Record<string, unknown>> };
  const tagOf = (name: string) => name.split(".", 1)[0]!;
  const missing = names.filter(
    (name) => !ADMIN_PAGES.some(({ tags }) => tags.includes(tagOf(name))),
  );
  if (missing.length > 0) throw new Error(`no page of the admin API has ${missing.join(", ")}`);
  return ADMIN_PAGES.map(({ slug, title, about, tags }) =>
    page(`http-api/${slug}.md`, [
      `# ${title}`,
      `This page is for the authors of programs that operate a gateway. It lists ${about}. [Admin API](admin.md) describes authentication, errors, and retries.`,
      ...names
        .filter((name) => tags.includes(tagOf(name)))
        .map((name) => {
          const path = `${API_PATH}/${name}`;
          const methods = Object.keys(paths[path]!).map((method) => method.toUpperCase());
          return adminEntry(name, methods, path);
        }),
    ]),
  );
}

const adminIndex = (): ReferencePage =>
  page("http-api/admin.md", [
    "# Admin API",
    "This page is for the authors of programs that operate a gateway. The admin API runs the same commands as `tollgate`, on the [admin listener](../configuration/admin.md).",
    '```text\ncurl -H "authorization: Bearer $TOKEN" http://127.0.0.1:9787/admin/v1/status\n```',
    "## Requests",
    `Each command has the path ${code(`${API_PATH}/<command>`)}. ${code("POST")} takes the input as a JSON object. A command that changes nothing also takes ${code("GET")} with the input in the query. ${code(`GET ${API_PATH}`)} lists the commands that the token may run, and ${code(OPENAPI_PATH)} describes all of them. Commands of plugins have the path ${code(`${API_PATH}/<plugin>/<command>`)}.`,
    "## Authentication",
    "Send an admin token as `authorization: Bearer <token>`. Browsers use the session cookie `tollgate` instead.",
    "## Roles",
    "Each role includes the roles above it in the table.",
    table(
      ["Role", "Permissions"],
      [
        ["`metrics`", "Reads counts and durations"],
        ["`viewer`", "Reads everything"],
        ["`operator`", "Makes changes that can be undone"],
        ["`owner`", "Can do everything"],
      ],
    ),
    "## Concurrent changes and retries",
    table(
      ["Header", "Meaning"],
      [
        ["`If-Match`", "ETag of a previous read. The command runs only if the object is unchanged"],
        ["`Idempotency-Key`", "A retry with this key within 10 minutes returns the first result"],
      ],
    ),
    "## Errors",
    "An error has the member `error` with `message`, `type`, `code`, `param`, and `request_id`. [Errors](../errors.md) lists the codes.",
    "## Endpoints",
    ADMIN_PAGES.map(({ slug, title, about }) => `- **[${title}](${slug}.md)**: ${about}`).join(
      "\n",
    ),
  ]);

const indexPage = (): ReferencePage =>
  page("http-api/README.md", [
    "# HTTP API reference",
    "This page is for application developers and for the authors of programs that operate a gateway. It lists all HTTP endpoints of the gateway.",
    [
      "- **[Client endpoints](endpoints.md)**: the routes of the frontends, in the formats of OpenAI, Anthropic, Google, and others",
      "- **[Job endpoints](jobs.md)**: files, batches, and videos",
      "- **[Sign-in endpoints](sign-in.md)**: the OAuth device flow, managed settings, and telemetry of signed-in clients",
      "- **[HTTP headers](headers.md)**: request headers and response headers",
      "- **[Errors](../errors.md)**: error codes, their HTTP status, and what to do",
      "- **[Admin API](admin.md)**: authentication, roles, and retries",
      ...ADMIN_PAGES.map(({ slug, title, about }) => `- **[${title}](${slug}.md)**: ${about}`),
    ].join("\n"),
    "## Endpoints of the gateway",
    'These endpoints need no API key. The column "Listener" names the listener that serves them.',
    table(["Endpoint", "Listener", "Response"], OWN_ENDPOINTS),
  ]);

export async function httpApiPages(): Promise<ReferencePage[]> {
  return [
    indexPage(),
    await endpointPage(),
    await jobPage(),
    await signInPage(),
    headerPage(),
    adminIndex(),
    ...adminPages(),
  ];
}
