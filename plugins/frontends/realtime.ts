// Frontend for OpenAI's Realtime API: spoken conversations over a WebSocket, for OpenAI's SDKs and
// agents, and for clients of Azure, whose URL names the deployment.
import { defineFrontend, fail, type HeadersIn, type RequestHead } from "tollgate/plugin";
import { realtime } from "tollgate/protocols/realtime";
import { responses } from "tollgate/protocols/responses";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { checkIntent, createRealtimeSecret, grantedSession } from "./realtime-secrets.ts";
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
  setup: ({ accept: schemes }, ctx) => ({
    protocol: realtime(),
    extractCredential: (headers) => browserKey(headers) ?? extractCredential(headers, schemes),
    // Errors before the connection is open are HTTP responses in OpenAI's format.
    encodeFault: (fault, _x, to) => responses().server!.encodeFault(fault, to),
    routes: [
      {
        method: "POST",
        path: bothPaths("/realtime/client_secrets"),
        body: "json",
        handle: (x, body) => createRealtimeSecret(ctx, x, body),
      },
      {
        method: "POST",
        path: UNSUPPORTED_SECRETS.flatMap(bothPaths),
        handle: () =>
          fail(
            "unsupported",
            "Secrets of the beta API and of translations are not supported. Use /v1/realtime/client_secrets.",
            { code: "client_secrets_unsupported" },
          ),
      },
    ],
    sockets: [
      {
        path: bothPaths("/realtime"),
        subprotocols: ["realtime"],
        action: "realtime",
        calls: bothPaths("/realtime/calls"),
        acceptsClientSecrets: true,
        readSession: grantedSession,
        readModel: (x) => ({ model: modelOf(x) }),
      },
    ],
  }),
});

function bothPaths(path: string): readonly string[] {
  return [...versionedPaths(path), ...azurePaths(path)];
}

/** Paths at which clients request secrets for sessions that are not served. */
const UNSUPPORTED_SECRETS = [
  "/realtime/sessions",
  "/realtime/transcription_sessions",
  "/realtime/translations/client_secrets",
];

function browserKey(headers: HeadersIn): string | undefined {
  const header = headers["sec-websocket-protocol"];
  const offered = (Array.isArray(header) ? header.join(",") : (header ?? "")).split(",");
  const key = offered.map((name) => name.trim()).find((name) => name.startsWith(KEY_PREFIX));
  return key?.slice(KEY_PREFIX.length) || undefined;
}

function modelOf(x: RequestHead): string {
  const granted = grantedSession(x);
  if (granted) checkIntent(x, granted);
  const model = granted?.model ?? x.query.get("model") ?? x.query.get("deployment");
  if (model !== null && model !== "") return model;
  const intent = x.query.get("intent") === "transcription" ? "intent=transcription&" : "";
  return fail(
    "invalid",
    `Missing model. Connect to /v1/realtime?${intent}model=<provider>/<model>.`,
    { param: "model", code: "missing_model" },
  );
}
