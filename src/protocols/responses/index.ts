// The responses protocol, `POST /v1/responses`, with both halves. It differs from chat completions
// in three ways. It has items in place of messages, its stream events are numbered and named, and
// it can store state. The gateway relays state only if no client can reach the state of another.
// Pure: no I/O, no clock, and no state between two method calls. May import: lib, model, plugin,
// and the shared tools of other protocols.
import { chatOperation } from "../../model/operations/chat-operation.ts";
import type { JSONSchema } from "json-schema-to-ts";
import { ZDR_ALLOWED_FIELDS } from "./zdr-allowed-fields.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import schema from "../../../schemas/responses.request.json" with { type: "json" };
import { encodeRequest as requestTo } from "./client/request.ts";
import { accountBound, capOutput, prepare } from "./client/prepare.ts";
import {
  decodeCount,
  createDecoder as streamFrom,
  decodeResponse as wholeFrom,
} from "./client/response.ts";
import { type ResponsesDialect, ORIGIN } from "./constants.ts";
import { FORWARDED_RESPONSE_HEADERS, encodeRateLimitHeaders } from "../response-headers.ts";
import { parseError } from "../failure/parse-error.ts";
import { conversationKey, knowsField, decodeRequest } from "./server/request.ts";
import { encodeFault } from "../failure/openai-error.ts";
import { ResponsesProviderSession } from "./client/session.ts";
import { createPassthrough } from "./client/passthrough.ts";
import { createEncoder, encodeResponse } from "./server/response.ts";
import { mayReason } from "../cost-analysis.ts";
import { RESPONSES_FIELD_NAMES, clientFieldName } from "../field-names.ts";
import { analyze } from "./analyze.ts";
import { COUNTED_TOOL_UNITS } from "./usage.ts";

export type { ResponsesDialect } from "./constants.ts";
export { openAiBackground } from "./client/background.ts";
export { createQueuedResponse } from "./server/response-object.ts";
export { failItem, failPreviousResponse, failResponse } from "./stored-references.ts";

export function responses(dialect: ResponsesDialect = {}): Protocol<"chat"> {
  const by = (tail: string) => (of: { params: { readonly [name: string]: string } }) =>
    `/responses/${encodeURIComponent(of.params["id"] ?? "")}${tail}`;
  return {
    id: ORIGIN,
    operationSpec: chatOperation,
    zdrAllowedFields: ZDR_ALLOWED_FIELDS,
    headers: {
      request: ["openai-beta"],
      response: FORWARDED_RESPONSE_HEADERS,
      zdrAllowed: { "openai-beta": ["responses=experimental"] },
    },
    server: {
      schema: schema as JSONSchema,
      analyze,
      conversationKey,
      decodeRequest: (body) => decodeRequest(body),
      createEncoder: (write, to) => createEncoder(write, to, dialect),
      encodeResponse: (answer, to) => encodeResponse(answer, to, dialect),
      clientFieldName: (field, body) => clientFieldName(RESPONSES_FIELD_NAMES, field, body),
      encodeFault,
      encodeCount: (tokens) => ({ object: "response.input_tokens", input_tokens: tokens }),
      encodeHeaders: encodeRateLimitHeaders,
      ping: ": ping\n\n",
    },
    client: {
      paths: {
        generate: "/responses",
        count: "/responses/input_tokens",
        retrieve: by(""),
        delete: by(""),
        input_items: by("/input_items"),
      },
      encodeRequest: (r, of) => requestTo(r, of, dialect),
      knowsField,
      analyze,
      createDecoder: (emit, _of, headers) => streamFrom(emit, headers),
      decodeResponse: (body, emit) => wholeFrom(body, emit),
      decodeFault: parseError,
      decodeCount,
      createSession: () => new ResponsesProviderSession(),
      accountBound,
      prepare: (out, of) => prepare(out, of, dialect),
      // The API has no field for stop sequences.
      maxStopSequences: 0,
      capOutput,
      mayHideReasoning: (out) => mayReason(out, ["reasoning"]),
      countedToolUnits: COUNTED_TOOL_UNITS,
      createPassthrough,
    },
  };
}
