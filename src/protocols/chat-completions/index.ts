// tollgate/protocols/chat-completions: OpenAI's chat completions API and the dialects of all
// backends that speak it. Frontends use `server/`, providers use `client/`. Pure: no I/O, no clock.
// May import: lib, model, plugin (types), and the other modules of this layer.
import { chatOperation } from "../../model/operations/chat-operation.ts";
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/chat-completions.request.json" with { type: "json" };
import type { Protocol } from "../../plugin/index.ts";
import { decodeFault as faultFrom } from "./client/fault.ts";
import { capOutput, prepare } from "./client/prepare.ts";
import { createPassthrough } from "./client/passthrough.ts";
import { MAX_STOP_SEQUENCES, encodeRequest as requestTo } from "./client/request.ts";
import { createDecoder as streamFrom, decodeResponse as wholeFrom } from "./client/response.ts";
import type { ChatDialect } from "./dialect.ts";
import { traitsOf } from "./dialect.ts";
import { ZDR_ALLOWED_FIELDS } from "./zdr-allowed-fields.ts";
import { conversationKey, knowsField, decodeRequest } from "./server/request.ts";
import { encodeFault } from "./server/response-common.ts";
import { FORWARDED_RESPONSE_HEADERS, encodeRateLimitHeaders } from "../response-headers.ts";
import { createEncoder } from "./server/stream.ts";
import { CHAT_FIELD_NAMES, clientFieldName } from "../field-names.ts";
import { reasoningOffFields } from "./client/reasoning-effort.ts";
import { mayReason } from "../cost-analysis.ts";
import { analyze } from "./analyze.ts";
import { encodeResponse } from "./server/response.ts";
import { ID } from "./constants.ts";

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
