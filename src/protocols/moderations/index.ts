// The moderations protocol, `POST /v1/moderations`, as used by OpenAI and Mistral. Frontends use
// its server half, providers its client half. Pure: no I/O, no clock, and no state between two
// method calls. May import: model, plugin (types), and the shared tools of other protocols.
import schema from "../../../schemas/moderations.request.json" with { type: "json" };
import { moderationOperation } from "../../model/operations/moderation-operation.ts";
import type { Body } from "../../model/values.ts";
import type { FieldAllowlist } from "../../plugin/index.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { isObject, asList } from "../json-values.ts";
import { failStreamed, operationProtocol } from "../operation-protocol.ts";
import { referencedFeatures, findReferences, valueFields } from "../references/index.ts";
import * as client from "./client.ts";
import * as server from "./server.ts";

export type { ModerationDialect } from "./client.ts";

export const moderations = (dialect: client.ModerationDialect = {}): Protocol<"moderation"> =>
  operationProtocol({
    id: "moderations",
    operationSpec: moderationOperation,
    zdrAllowedFields: ZDR_ALLOWED_FIELDS,
    analyze,
    server: {
      schema,
      decodeRequest: server.decodeRequest,
      createEncoder: failStreamed("Moderations"),
      encodeResponse: server.encodeResponse,
    },
    client: {
      paths: { generate: "/moderations" },
      encodeRequest: client.encodeRequest,
      knowsField: server.knowsField,
      decodeResponse: client.decodeResponse,
      prepare: (out, of) => client.prepare(out, of, dialect),
      createPassthrough: client.createPassthrough,
    },
  });

function analyze(body: Body): RequestFacts {
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

/** Request fields that may be sent under `Service-ZDR`, from OpenAI's documentation. */
const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  [
    "content to moderate",
    {
      input: [null, { text: valueFields("text"), image_url: { image_url: valueFields("url") } }],
    },
  ],
  ["the user identifier, sent as a hash", valueFields("user")],
];
