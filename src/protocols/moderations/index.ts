// The moderations protocol, `POST /v1/moderations`, as used by OpenAI and Mistral. Frontends use
// its server half, providers its client half. Pure: no I/O, no clock, and no state between two
// method calls. May import: model, plugin (types), and the shared tools of other protocols.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/moderations.request.json" with { type: "json" };
import { moderationOperation } from "../../model/operations/moderation-operation.ts";
import type { Body } from "../../model/values.ts";
import type { FieldAllowlist } from "../../plugin/index.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import { parseError } from "../failure/parse-error.ts";
import { isObject, asList } from "../json-values.ts";
import {
  prepare,
  createPassthrough,
  encodeRequest as requestTo,
  failNotStreamed,
  decodeResponse as wholeFrom,
  type ModerationDialect,
} from "./client.ts";
import { decodeRequest, failStreamed, encodeResponse, ID, knowsField } from "./server.ts";
import { encodeRateLimitHeaders, FORWARDED_RESPONSE_HEADERS } from "../response-headers.ts";
import { referencedFeatures, findReferences, valueFields } from "../references/index.ts";
import { encodeFault } from "../responses/server/fault.ts";

export type { ModerationDialect } from "./client.ts";

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

// Analyzes a request in both modes: its possible cost and the features that the model needs.

export function analyze(body: Body): RequestFacts {
  const named = findReferences(body);
  const pictures = asList(body["input"]).filter(
    (one) => isObject(one) && one["type"] === "image_url",
  );
  return {
    features: [...referencedFeatures(named), ...(pictures.length > 0 ? (["vision"] as const) : [])],
    references: named,
    exactUsage: { requests: 1 },
    ...(pictures.length > 0 && {
      media: { count: pictures.length, bytes: JSON.stringify(pictures).length },
    }),
  };
}

// Request fields that may be sent under `Service-ZDR`, reviewed against OpenAI's documentation.

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  [
    "content to moderate",
    {
      input: [null, { text: valueFields("text"), image_url: { image_url: valueFields("url") } }],
    },
  ],
  ["the user identifier, sent as a hash", valueFields("user")],
];
