// Frontend for messages, the endpoint that Anthropic's SDKs and Claude Code call.
import { defineFrontend, fail, type Body, type HeadersIn } from "tollgate/plugin";
import { messages } from "tollgate/protocols/messages";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { versionedPaths } from "./route-paths.ts";

const VERSION_HEADER = "anthropic-version";

export default defineFrontend({
  api: 1,
  name: "messages",
  summary: "Serve Anthropic messages at POST /v1/messages",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("x-api-key", "bearer") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: messages(),
    extractCredential(headers, query) {
      checkVersion(headers);
      return extractCredential(headers, schemes, query);
    },
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

function checkVersion(headers: HeadersIn): void {
  const version = headers[VERSION_HEADER];
  if (version !== undefined && !(typeof version === "string" && isDate(version)))
    fail("invalid", `${VERSION_HEADER} must be a date such as 2023-06-01.`, {
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
