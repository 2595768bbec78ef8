// The moderations protocol, `POST /v1/moderations`, as used by OpenAI and Mistral. Frontends use
// its server half, providers its client half. Pure: no I/O, no clock, and no state between two
// method calls. May import: model, plugin (types), and the shared tools of other protocols.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/moderations.request.json" with { type: "json" };
import { moderationOperation } from "../../model/operations/moderation-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { parseError } from "../failure/parse-error.ts";
import { FORWARDED_RESPONSE_HEADERS } from "../response-headers.ts";
import { encodeRateLimitHeaders } from "../rate-limit-headers.ts";
import { encodeFault } from "../responses/server/fault.ts";
import { prepare } from "./client/prepare.ts";
import { createPassthrough } from "./client/passthrough.ts";
import { encodeRequest as requestTo } from "./client/request.ts";
import { failNotStreamed } from "./client/stream.ts";
import { decodeResponse as wholeFrom } from "./client/response.ts";
import type { ModerationDialect } from "./dialect.ts";
import { ZDR_ALLOWED_FIELDS } from "./zdr-allowed-fields.ts";
import { decodeRequest } from "./server/request.ts";
import { failStreamed } from "./server/stream.ts";
import { encodeResponse } from "./server/response.ts";
import { analyze } from "./analyze.ts";
import { ID, knowsField } from "./constants.ts";

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
    createDecoder: failNotStreamed,
    decodeResponse: wholeFrom,
    decodeFault: parseError,
    prepare: (out, of) => prepare(out, of, dialect),
    createPassthrough,
  },
});
