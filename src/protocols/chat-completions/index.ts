// tollgate/protocols/chat-completions: OpenAI's chat completions API and the dialects of all
// backends that speak it. Frontends use `server/`, providers use `client/`. Pure: no I/O, no clock.
// May import: lib, model, plugin (types), and the other modules of this layer.
import { chatOperation } from "../../model/operations/chat-operation.ts";
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/chat-completions.request.json" with { type: "json" };
import type { Protocol, Body, Feature, JsonObject, RequestFacts } from "../../plugin/index.ts";
import {
  decodeFault as faultFrom,
  createDecoder as streamFrom,
  decodeResponse as wholeFrom,
} from "./client/response.ts";
import { capOutput, prepare } from "./client/prepare.ts";
import { createPassthrough } from "./client/passthrough.ts";
import { MAX_STOP_SEQUENCES, encodeRequest as requestTo } from "./client/request.ts";
import { type ChatDialect, traitsOf } from "./dialect.ts";
import { ZDR_ALLOWED_FIELDS } from "./zdr-allowed-fields.ts";
import { conversationKey, knowsField, decodeRequest } from "./server/request.ts";
import { encodeFault } from "./server/response-common.ts";
import { FORWARDED_RESPONSE_HEADERS, encodeRateLimitHeaders } from "../response-headers.ts";
import { createEncoder } from "./server/stream.ts";
import { CHAT_FIELD_NAMES, clientFieldName } from "../field-names.ts";
import { reasoningOffFields } from "./client/reasoning-effort.ts";
import { mayReason, analyzeCost } from "../cost-analysis.ts";
import { encodeResponse } from "./server/response.ts";
import { ID } from "./constants.ts";
import { referencedFeatures, findReferences } from "../references/index.ts";
import { asList, asNumber, asObject, asText } from "../json-values.ts";

export type { ChatDialect, ChatTraits, ReasoningTraits } from "./dialect.ts";

export const chatCompletions = (dialect: ChatDialect = {}): Protocol<"chat"> => ({
  id: ID,
  operationSpec: chatOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  headers: {
    request: ["x-client-request-id", "x-session-affinity"],
    response: FORWARDED_RESPONSE_HEADERS,
  },
  server: {
    schema: schema as unknown as JSONSchema,
    analyze,
    conversationKey,
    decodeRequest,
    createEncoder,
    encodeResponse,
    clientFieldName: (field, body) => clientFieldName(CHAT_FIELD_NAMES, field, body),
    encodeFault,
    encodeHeaders: encodeRateLimitHeaders,
    ping: ": ping\n\n",
  },
  client: {
    paths: { generate: "/chat/completions" },
    encodeRequest: (r, of) => requestTo(r, of, dialect),
    knowsField,
    analyze,
    createDecoder: (emit, of) => streamFrom(emit, of, dialect),
    decodeResponse: (body, emit, of) => wholeFrom(body, emit, of, dialect),
    decodeFault: faultFrom,
    prepare: (out, of) => prepare(out, of, dialect),
    maxStopSequences: MAX_STOP_SEQUENCES,
    capOutput: (out, tokens) => capOutput(out, tokens, dialect),
    mayHideReasoning: (out, of) =>
      mayReason(out, reasoningOffFields(of, traitsOf(dialect, of.model))),
    createPassthrough: (sink, to) => createPassthrough(sink, to, dialect),
  },
});

// Analyzes a request body, in passthrough and translated mode, without decoding it.

const PARTS: Readonly<Record<string, Feature>> = {
  image_url: "vision",
  input_image: "vision",
  image: "vision",
  video_url: "vision",
  input_audio: "audio",
  audio_url: "audio",
  file: "documents",
};

/** Types of content parts that consist of text. Their bytes count as input of the model. */
const WORDS: ReadonlySet<string> = new Set([
  "text",
  "input_text",
  "output_text",
  "refusal",
  "thinking",
  "reasoning",
]);

function analyze(body: Body): RequestFacts {
  const fields = body as JsonObject;
  const named = findReferences(body);
  const found = referencedFeatures(named);
  if (fields["stream"] === true) found.add("stream");
  const media = { count: 0, bytes: 0 };
  for (const message of asList(fields["messages"])) needs(asObject(message), found, media);
  if (asList(fields["tools"]).length > 0 || asList(fields["functions"]).length > 0)
    found.add("tools");
  if (fields["parallel_tool_calls"] === true) found.add("parallel_tools");
  const format = asObject(fields["response_format"])?.["type"];
  if (format === "json_object") found.add("json");
  if (format === "json_schema") found.add("json_schema");
  if (fields["logprobs"] === true) found.add("logprobs");
  if (asList(fields["modalities"]).includes("audio")) found.add("audio");
  const effort = asText(fields["reasoning_effort"]);
  if (asObject(fields["thinking"])?.["type"] === "enabled" || (effort && effort !== "none"))
    found.add("reasoning");
  const bound = asNumber(fields["max_completion_tokens"]) ?? asNumber(fields["max_tokens"]);
  if ((asNumber(fields["n"]) ?? 1) > 1) found.add("n");
  return {
    features: [...found],
    references: named,
    ...analyzeCost(fields, named, { maxOutput: bound }),
    media: media.count > 0 ? media : undefined,
  };
}

function needs(
  message: JsonObject | undefined,
  found: Set<Feature>,
  media: { count: number; bytes: number },
): void {
  const role = message?.["role"];
  if (role === "system" || role === "developer") found.add("system");
  const content = message?.["content"];
  if (!Array.isArray(content)) return;
  for (const raw of content) {
    const part = asObject(raw);
    if (!part) continue;
    const type = asText(part["type"]) ?? "";
    if (WORDS.has(type)) continue;
    // An unknown part type may be newer than the gateway. It counts as media, because only the
    // provider can determine its number of input tokens.
    media.count++;
    if (!Object.hasOwn(PARTS, type)) continue;
    found.add(PARTS[type]!);
    media.bytes += dataIn(part[type]);
  }
}

/** Returns the length of the base64 or URL text in a content part. */
const dataIn = (part: unknown): number =>
  typeof part === "string"
    ? part.length
    : Math.max(
        ...["url", "data", "file_data"].map(
          (key) => asText(asObject(part as never)?.[key])?.length ?? 0,
        ),
      );
