// The messages protocol, `POST /v1/messages`, as used by Anthropic's SDKs, Claude Code, and about
// 14 backends. Frontends use its server half, providers its client half. `server/` and `client/`
// contain one file per function of the protocol contract. Pure: no I/O, no clock, and no state
// between two method calls. May import: model, plugin (types), and the shared tools of other
// protocols.
import { chatOperation } from "../../model/operations/chat-operation.ts";
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/messages.request.json" with { type: "json" };
import type { CallContext, Path, Protocol } from "../../plugin/protocol.ts";
import { parseError } from "../failure/parse-error.ts";
import { capOutput, prepare, mayHideReasoning } from "./client/prepare.ts";
import {
  decodeCount,
  createDecoder as decoder,
  decodeResponse as decode,
} from "./client/response.ts";
import { createPassthrough } from "./client/passthrough.ts";
import { encodeRequest as encode } from "./client/request.ts";
import { FORWARDED_RESPONSE_HEADERS } from "../response-headers.ts";
import { settingsFor, type MessagesDialect } from "./dialect.ts";
import { ZDR_ALLOWED_FIELDS, ZDR_ALLOWED_HEADERS } from "./zdr-allowed-fields.ts";
import { conversationKey, decodeRequest } from "./server/request.ts";
import { encodeFault as refusal, encodeHeaders } from "./server/fault.ts";
import { createEncoder } from "./server/stream.ts";
import { encodeResponse } from "./server/response.ts";
import { MESSAGES_FIELD_NAMES, clientFieldName } from "../field-names.ts";
import { COUNTED_TOOL_UNITS } from "./usage.ts";
import { ID, knowsField } from "./constants.ts";
import type { Feature } from "../../model/facts.ts";
import type { Body, Json } from "../../model/values.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { referencedFeatures, hostedToolFeatures, findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";
import { isObject, asList, asNumber } from "../json-values.ts";

export { claude, type MessagesDialect, type MessagesTraits } from "./dialect.ts";
export { filterBetas, requestedBetas } from "./client/beta-pairs.ts";

/**
 * Schema shared by messages and token counts. The frontend requires `max_tokens` only where there
 * is output to limit.
 */
const shared = {
  ...schema,
  required: schema.required.filter((field) => field !== "max_tokens"),
} as unknown as JSONSchema;

/**
 * Request headers that Anthropic's API reads. New versions of clients add headers, so the list is
 * open. For other backends only the version matters.
 */
const REQUEST = ["anthropic-version", "anthropic-*", "x-app", "x-claude-code-*"];
/** `prepare` removes the betas together with their parts of the body. */
const REQUEST_OF_OTHERS = ["anthropic-version", "anthropic-beta"];

export const messages = (dialect: MessagesDialect = {}): Protocol<"chat"> => {
  const at = (of: CallContext) => settingsFor(dialect, of.model);
  const { signer, betas, countsTokens } = settingsFor(dialect, "");
  const path =
    (path: string): Path =>
    (of) =>
      betas && of.query.get("beta") === "true" ? `${path}?beta=true` : path;
  return {
    id: ID,
    operationSpec: chatOperation,
    zdrAllowedFields: ZDR_ALLOWED_FIELDS,
    headers: {
      request: betas ? REQUEST : REQUEST_OF_OTHERS,
      response: FORWARDED_RESPONSE_HEADERS,
      zdrAllowed: ZDR_ALLOWED_HEADERS,
    },
    server: {
      schema: shared,
      analyze,
      conversationKey,
      decodeRequest: (body) => decodeRequest(body),
      createEncoder,
      encodeResponse,
      clientFieldName: (field, body) => clientFieldName(MESSAGES_FIELD_NAMES, field, body),
      encodeFault: refusal,
      encodeCount: (tokens) => ({ input_tokens: tokens }),
      encodeHeaders,
      ping: 'event: ping\ndata: {"type":"ping"}\n\n',
    },
    client: {
      paths: {
        generate: path("/messages"),
        ...(countsTokens && { count: path("/messages/count_tokens") }),
      },
      encodeRequest: (r, of) => encode(r, of, at(of)),
      knowsField,
      analyze,
      createDecoder: (emit) => decoder(emit, signer),
      decodeResponse: (body, emit) => decode(body, emit, signer),
      decodeFault: parseError,
      ...(countsTokens && { decodeCount }),
      prepare: (out, of) => prepare(out, of, at(of)),
      capOutput,
      mayHideReasoning: (out, of) => mayHideReasoning(out, at(of)),
      countedToolUnits: COUNTED_TOOL_UNITS,
      createPassthrough,
    },
  };
};

/**
 * Analyzes a request in both modes: the features that the model needs and the state that the
 * provider would store.
 */
function analyze(body: Body): RequestFacts {
  const named = findReferences(body);
  const features = referencedFeatures(named);
  if (body["stream"] === true) features.add("stream");
  if (body["system"] !== undefined && body["system"] !== "") features.add("system");
  if (asList(body["tools"]).some((tool) => isObject(tool) && hostedToolFeatures(tool) === null))
    features.add("tools");
  const thinking = body["thinking"];
  if (isObject(thinking) && thinking["type"] !== "disabled") features.add("reasoning");
  const config = body["output_config"];
  if (isObject(config) && config["format"]) features.add("json_schema");
  if (body["output_format"]) features.add("json_schema");
  const media = { count: 0, bytes: 0 };
  blocks(body["system"], features, media);
  for (const message of asList(body["messages"]))
    if (isObject(message)) blocks(message["content"], features, media);
  return {
    features: [...features],
    references: named,
    ...analyzeCost(body, named, {
      maxOutput: asNumber(body["max_tokens"]),
      zeroOutputField: "max_tokens",
      toolsHaveMaxUses: true,
    }),
    ...(media.count > 0 && { media }),
  };
}

/**
 * Block types whose size in bytes indicates the number of input tokens. The input of other block
 * types cannot be estimated from their size.
 */
const WORDS: ReadonlySet<string> = new Set([
  "text",
  "thinking",
  "redacted_thinking",
  "tool_use",
  "tool_result",
  "tool_reference",
  "search_result",
  "document",
  "server_tool_use",
  "web_search_tool_result",
  "mcp_tool_use",
  "mcp_tool_result",
]);

function blocks(
  content: unknown,
  features: Set<Feature>,
  media: { count: number; bytes: number },
): void {
  if (!Array.isArray(content)) return;
  for (const block of content as readonly Json[]) {
    if (!isObject(block)) continue;
    switch (block["type"]) {
      case "image":
        features.add("vision");
        break;
      case "document":
        features.add("documents");
        break;
      case "tool_result":
        blocks(block["content"], features, media);
    }
    const source = block["source"];
    const binary = isObject(source) && source["type"] !== "text" && source["type"] !== "content";
    if (binary) {
      media.count++;
      media.bytes += typeof source["data"] === "string" ? source["data"].length : 0;
    } else if (!WORDS.has(String(block["type"]))) media.count++;
    if (isObject(source)) blocks(source["content"], features, media);
  }
}
