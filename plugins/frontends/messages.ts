// Frontend for messages, the endpoint that Anthropic's SDKs and Claude Code call.
import {
  defineFrontend,
  fail,
  type Body,
  type Fault,
  type HeadersIn,
  type JsonObject,
  type Protocol,
  type Route,
} from "tollgate/plugin";
import { messages } from "tollgate/protocols/messages";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { MessagesTools } from "./model-tools/messages/messages-tools.ts";
import { modelToolsOption } from "./model-tools/options.ts";
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
    properties: {
      accept: acceptOption("x-api-key", "bearer"),
      gateway_mcp: modelToolsOption,
    },
  },
  setup({ accept: schemes, gateway_mcp }, ctx) {
    const protocol = messages();
    const gatewayTools =
      gateway_mcp &&
      new MessagesTools(ctx, gateway_mcp, (fault, { id }) => encodeFault(protocol, fault, id));
    const routes = createRoutes(gatewayTools);
    return {
      protocol,
      extractCredential(headers, query) {
        checkVersion(headers);
        return extractCredential(headers, schemes, query);
      },
      routes,
    };
  },
});

const encodeFault = (protocol: Protocol, fault: Fault, id: string) =>
  protocol.server!.encodeFault(fault, { id }).body;

const createRoutes = (gatewayTools: MessagesTools | undefined): readonly Route[] => [
  {
    method: "POST",
    path: versionedPaths("/messages"),
    actionType: "generate",
    readInput(x, body) {
      const input = requireMaxTokens(body);
      const request = gatewayTools?.read(x, body);
      if (!request) return input;
      const edits = gatewayTools!.editsOf(request);
      if (request.servers.length === 0) return { ...input, edits };
      const answer = () => gatewayTools!.respond(x, body as JsonObject, request);
      return { ...input, edits, answer };
    },
  },
  {
    method: "POST",
    path: versionedPaths("/messages/count_tokens"),
    actionType: "count",
    async readInput(x, body) {
      const { model } = requireModel(body);
      const request = gatewayTools?.read(x, body);
      if (!request) return { model };
      return { model, edits: await gatewayTools!.expand(x, body as JsonObject, request) };
    },
  },
  {
    method: "HEAD",
    path: ["/", "/api/hello"],
    allowUnauthenticated: true,
    handle: () => ({ status: 200 }),
  },
];

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

function requireModel({ model }: Body): { model: string } {
  return typeof model === "string" && model !== ""
    ? { model }
    : fail("invalid", "Missing model. Set it to the name of a model.", {
        param: "model",
        code: "invalid_request",
      });
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
