// Frontend for OpenAI's Realtime API: spoken conversations over a WebSocket, for OpenAI's SDKs and
// agents, and for clients of Azure, whose URL names the deployment.
import { defineFrontend, fail, type HeadersIn, type RequestHead } from "tollgate/plugin";
import { realtime } from "tollgate/protocols/realtime";
import { responses } from "tollgate/protocols/responses";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { azurePaths, versionedPaths } from "./route-paths.ts";

/** Browsers cannot set headers of a WebSocket, so they send the key as a sub-protocol. */
const KEY_PREFIX = "openai-insecure-api-key.";

export default defineFrontend({
  api: 1,
  name: "realtime",
  summary: "Serve OpenAI's Realtime API over WebSockets at /v1/realtime",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("bearer", "api-key") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: realtime(),
    extractCredential: (headers) => browserKey(headers) ?? extractCredential(headers, schemes),
    // Errors before the connection is open are HTTP responses in OpenAI's format.
    encodeFault: (fault, _x, to) => responses().server!.encodeFault(fault, to),
    routes: [
      {
        method: "POST",
        path: SECRET_PATHS.flatMap((path) => [...versionedPaths(path), ...azurePaths(path)]),
        handle: rejectSecrets,
      },
    ],
    sockets: [
      {
        path: [...versionedPaths("/realtime"), ...azurePaths("/realtime")],
        subprotocols: ["realtime"],
        action: "realtime",
        calls: [...versionedPaths("/realtime/calls"), ...azurePaths("/realtime/calls")],
        readModel: (x) => ({ model: modelOf(x) }),
      },
    ],
  }),
});

/** Paths at which clients request keys for browsers. */
const SECRET_PATHS = ["/realtime/client_secrets", "/realtime/sessions"];

const rejectSecrets = (): never =>
  fail(
    "unsupported",
    "Keys for browsers are not supported, because the gateway could not meter their calls. Let your server send the browser's offer to /v1/realtime/calls.",
    { code: "client_secrets_unsupported" },
  );

function browserKey(headers: HeadersIn): string | undefined {
  const header = headers["sec-websocket-protocol"];
  const offered = (Array.isArray(header) ? header.join(",") : (header ?? "")).split(",");
  const key = offered.map((name) => name.trim()).find((name) => name.startsWith(KEY_PREFIX));
  return key?.slice(KEY_PREFIX.length) || undefined;
}

function modelOf({ query }: RequestHead): string {
  const model = query.get("model") ?? query.get("deployment");
  if (model !== null && model !== "") return model;
  const intent = query.get("intent") === "transcription" ? "intent=transcription&" : "";
  return fail(
    "invalid",
    `Missing model. Connect to /v1/realtime?${intent}model=<provider>/<model>.`,
    { param: "model", code: "missing_model" },
  );
}
