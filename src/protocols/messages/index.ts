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
import { analyze } from "./analyze.ts";
import { COUNTED_TOOL_UNITS } from "./usage.ts";
import { ID, knowsField } from "./constants.ts";

export { claude, type MessagesDialect, type MessagesTraits } from "./dialect.ts";

/**
 * Schema shared by messages and token counts. The frontend requires `max_tokens` only where there
 * is output to limit.
 */
const shared = {
  ...schema,
  required: schema.required.filter((field) => field !== "max_tokens"),
} as unknown as JSONSchema;

/** Request headers that Anthropic's API reads. For other backends only the version matters. */
const REQUEST = [
  "anthropic-version",
  "anthropic-beta",
  "anthropic-dangerous-direct-browser-access",
  "x-app",
  "x-claude-code-*",
];

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
      request: betas ? REQUEST : REQUEST.slice(0, 1),
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
