// The moderations protocol, `POST /v1/moderations`: OpenAI's, and Mistral's in the same form. Frontends use its server half,
// providers its client half. Pure: no I/O, no clock, nothing remembered between two methods. May import: model, plugin
// (types), and the tools its neighbours lend.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/moderations.request.json" with { type: "json" };
import { moderationOperation } from "../../model/moderation-work.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { parseError } from "../failure/failure.ts";
import { FORWARDED_RESPONSE_HEADERS } from "../headers.ts";
import { encodeRateLimitHeaders } from "../limits.ts";
import { encodeFault } from "../responses/server/fault.ts";
import { prepare } from "./client/prepare.ts";
import { createPassthrough } from "./client/relay.ts";
import { encodeRequest as requestTo } from "./client/request.ts";
import { failNotStreamed as streamFrom } from "./client/stream.ts";
import { decodeResponse as wholeFrom } from "./client/whole.ts";
import type { ModerationDialect } from "./dialect.ts";
import { ZDR_ALLOWED_FIELDS } from "./reviewed.ts";
import { decodeRequest } from "./server/request.ts";
import { failStreamed } from "./server/stream.ts";
import { encodeResponse } from "./server/whole.ts";
import { analyze } from "./survey.ts";
import { ID, knowsField } from "./words.ts";

export type { ModerationDialect } from "./dialect.ts";

export const moderations = (dialect: ModerationDialect = {}): Protocol<"moderation"> => ({
  id: ID,
  operationSpec: moderationOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  headers: { response: FORWARDED_RESPONSE_HEADERS },
  server: {
    schema: schema as unknown as JSONSchema,
    analyze,
    decodeRequest,
    createEncoder: failStreamed,
    encodeResponse,
    encodeFault,
    encodeHeaders: encodeRateLimitHeaders,
    ping: "",
  },
  client: {
    paths: { generate: "/moderations" },
    encodeRequest: requestTo,
    knowsField,
    analyze,
    createDecoder: streamFrom,
    decodeResponse: wholeFrom,
    decodeFault: parseError,
    prepare: (out, of) => prepare(out, of, dialect),
    createPassthrough,
  },
});
