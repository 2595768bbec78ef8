// The completions protocol, `POST /v1/completions`: OpenAI's older API, which servers of base
// models and code editors use. Frontends use its server half, providers its client half. Also
// contains Mistral's fill-in-the-middle API. Pure: no I/O, no clock, no state between two methods.
// May import: model, plugin (types), and the tools of neighboring protocols.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/completions.request.json" with { type: "json" };
import { completionOperation } from "../../model/operations/completion-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { chatCompletions } from "../chat-completions/index.ts";
import { parseError } from "../failure/parse-error.ts";
import { FORWARDED_RESPONSE_HEADERS, encodeRateLimitHeaders } from "../response-headers.ts";
import { encodeFault } from "../responses/server/fault.ts";
import {
  capOutput,
  encodeFimRequest,
  prepare,
  createPassthrough,
  encodeRequest as requestTo,
  createDecoder as streamFrom,
  decodeResponse as wholeFrom,
} from "./client.ts";
import { type CompletionDialect, ZDR_ALLOWED_FIELDS, analyze, ID, knowsField } from "./spec.ts";
import { decodeRequest, createEncoder, encodeResponse } from "./server.ts";

export type { CompletionDialect } from "./spec.ts";
export { singlePrompt } from "./client.ts";

export const completions = (dialect: CompletionDialect = {}): Protocol<"completion"> => ({
  id: ID,
  operationSpec: completionOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  headers: { response: FORWARDED_RESPONSE_HEADERS },
  server: {
    schema: schema as unknown as JSONSchema,
    analyze,
    decodeRequest,
    createEncoder,
    encodeResponse,
    encodeFault,
    encodeHeaders: encodeRateLimitHeaders,
    ping: ": ping\n\n",
  },
  client: {
    paths: { generate: "/completions" },
    encodeRequest: requestTo,
    knowsField,
    analyze,
    createDecoder: streamFrom,
    decodeResponse: wholeFrom,
    decodeFault: parseError,
    prepare: (out, of) => prepare(out, of, dialect),
    capOutput,
    mayHideReasoning: () => false,
    createPassthrough,
  },
});

/**
 * Mistral's `POST /v1/fim/completions`. Requests have the form of this protocol, responses have the
 * form of chat completions.
 */
export function mistralFim(): Protocol<"completion"> {
  const { createDecoder: streamOfChat, decodeResponse: wholeOfChat } = chatCompletions({
    streamUsage: "none",
  }).client!;
  return {
    id: "mistral-fim",
    operationSpec: completionOperation,
    zdrAllowedFields: ZDR_ALLOWED_FIELDS,
    client: {
      paths: { generate: "/fim/completions" },
      encodeRequest: encodeFimRequest,
      knowsField,
      analyze,
      createDecoder: streamOfChat,
      decodeResponse: wholeOfChat,
      decodeFault: parseError,
      capOutput,
      mayHideReasoning: () => false,
    },
  };
}
