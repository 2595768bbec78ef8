// Frontend for messages, the endpoint that Anthropic's SDKs and Claude Code call.
import { defineFrontend, fail, type Body, type HeadersIn } from "tollgate/plugin";
import { messages } from "tollgate/protocols/messages";
import { versionedPaths } from "./route-paths.ts";

/** From this version on, the SDKs of the protocol send the key as a bearer token. */
const BEARER_SINCE_VERSION = "2026-10-21";
const VERSION_HEADER = "anthropic-version";
const DEFAULT_VERSION = "2023-06-01";

export default defineFrontend({
  api: 1,
  name: "messages",
  summary: "Serve Anthropic messages at POST /v1/messages",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      bearer: {
        enum: ["by_version", "always"],
        default: "by_version",
        description:
          "Whether Authorization: Bearer may contain the key. by_version: only for " +
          "anthropic-version 2026-10-21 and later, whose SDKs use it",
      },
    },
  },
  setup: ({ bearer }) => ({
    protocol: messages(),
    extractCredential: (headers) => readKey(headers, bearer, versionOf(headers)),
    routes: [
      {
        method: "POST",
        path: versionedPaths("/messages"),
        actionType: "generate",
        readInput: (_x, body) => requireMaxTokens(body),
      },
      { method: "POST", path: versionedPaths("/messages/count_tokens"), actionType: "count" },
      {
        method: "HEAD",
        path: ["/", "/api/hello"],
        allowUnauthenticated: true,
        handle: () => ({ status: 200 }),
      },
    ],
  }),
});

/**
 * Requires `max_tokens`. The schema does not require it, because token counting uses the same
 * schema and has no output to limit.
 */
function requireMaxTokens(body: Body): { model: string } {
  if (body["max_tokens"] === undefined)
    fail("invalid", "Missing max_tokens. Set it to the maximum length of the response in tokens.", {
      param: "max_tokens",
      code: "invalid_request",
    });
  return { model: body["model"] as string };
}

function versionOf(headers: HeadersIn): string {
  const version = headers[VERSION_HEADER];
  if (version === undefined) return DEFAULT_VERSION;
  if (typeof version === "string" && isDate(version)) return version;
  return fail("invalid", `${VERSION_HEADER} must be a date such as ${DEFAULT_VERSION}.`, {
    param: VERSION_HEADER,
    code: "invalid_version",
  });
}

/** Whether the text is an existing date. 2026-02-30 is not. */
function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

function readKey(headers: HeadersIn, bearer: string, version: string): string | undefined {
  const key = [headers["x-api-key"]].flat()[0] || undefined;
  const token = /^Bearer +(\S.*)$/i.exec(headers.authorization ?? "")?.[1];
  if (key !== undefined && token !== undefined && key !== token)
    fail(
      "unauthenticated",
      "x-api-key and Authorization contain different keys. Send only one key, in x-api-key.",
      { code: "ambiguous_credentials" },
    );
  if (key !== undefined || token === undefined) return key;
  if (bearer === "always" || version >= BEARER_SINCE_VERSION) return token;
  return fail(
    "unauthenticated",
    "This endpoint accepts the key in the x-api-key header (ANTHROPIC_API_KEY), not as Authorization: Bearer; " +
      "the operator can allow it with `bearer: always`.",
    { code: "bearer_not_accepted" },
  );
}
