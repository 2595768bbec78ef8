// The images protocol, `POST /v1/images/generations` and `/v1/images/edits`, of OpenAI and
// compatible backends. Frontends use its server half, providers its client half. Pure: no I/O, no
// clock, no state between two methods. May import: model, plugin (types), and the tools of
// neighboring protocols.
import { imageOperation } from "../../model/operations/image-operation.ts";
import type { JSONSchema } from "json-schema-to-ts";
import editsSchema from "../../../schemas/image-edits.request.json" with { type: "json" };
import schema from "../../../schemas/images.request.json" with { type: "json" };
import type { CallContext, Protocol } from "../../plugin/protocol.ts";
import { FORWARDED_RESPONSE_HEADERS, encodeRateLimitHeaders } from "../response-headers.ts";
import { createEncoder, encodeResponse, encodeFault, decodeRequest } from "./server.ts";
import {
  createDecoder as streamFrom,
  decodeResponse as wholeFrom,
  toXaiFields,
  prepare,
  encodeRequest as requestTo,
} from "./client.ts";
import {
  traitsOf,
  type ImageDialect,
  analyze,
  EDITS,
  ID,
  knowsField,
  ZDR_ALLOWED_FIELDS,
} from "./spec.ts";
import { parseError } from "../failure/parse-error.ts";
import { createPassthrough } from "./passthrough.ts";

export type { ImageDialect, ImageTraits } from "./spec.ts";
export { requireSupported, ratioOf, sizeOf, type Size, type ImageParameters } from "./size.ts";
export { formatOf, sniffImage, type ImageHead } from "../sniff-image.ts";

export const images = (dialect: ImageDialect = {}): Protocol<"image"> => {
  const at = (of: CallContext) => traitsOf(dialect, of.model);
  // If the backend returns only URLs, the gateway must fetch the bytes that a client requests.
  // Passthrough mode is then not available.
  const { responseFormat } = dialect;
  return {
    id: ID,
    operationSpec: imageOperation,
    zdrAllowedFields: ZDR_ALLOWED_FIELDS,
    headers: { response: FORWARDED_RESPONSE_HEADERS },
    server: {
      schema: schema as unknown as JSONSchema,
      analyze,
      decodeRequest: (body) => decodeRequest(body, false),
      createEncoder: (write, to) => createEncoder(write, to),
      encodeResponse,
      encodeFault,
      encodeHeaders: encodeRateLimitHeaders,
      ping: ": ping\n\n",
    },
    client: {
      paths: {
        generate: "/images/generations",
        ...(dialect.edits && { [EDITS]: "/images/edits" }),
      },
      encodeRequest: (r, of) => requestTo(r, of),
      knowsField,
      analyze,
      createDecoder: (emit) => streamFrom(emit),
      decodeResponse: (body, emit, of) => wholeFrom(body, emit, of),
      decodeFault: parseError,
      prepare: (out, of) => prepare(out, of, at(of)),
      ...(responseFormat !== "url" && { createPassthrough }),
    },
  };
};

/**
 * The protocol for editing input images, sent as a form or as JSON, with its own stream events. Its
 * routes use the action `edits`.
 */
export const imageEdits = (): Protocol<"image"> => {
  const made = images();
  return {
    ...made,
    server: {
      ...made.server!,
      schema: editsSchema as unknown as JSONSchema,
      decodeRequest: (body) => decodeRequest(body, true),
      createEncoder: (write, to) => createEncoder(write, to, "image_edit"),
    },
  };
};

/**
 * xAI's protocol for editing images. It has the same path, but accepts only JSON and has different
 * field names.
 */
export const xaiImageEdits = (dialect: ImageDialect = {}): Protocol<"image"> => {
  const { operationSpec, zdrAllowedFields, headers, client } = images(dialect);
  const { createPassthrough: _, ...rest } = client!;
  return {
    id: "xai-edits",
    operationSpec,
    ...(zdrAllowedFields && { zdrAllowedFields }),
    ...(headers && { headers }),
    client: {
      ...rest,
      paths: { generate: "/images/edits", [EDITS]: "/images/edits" },
      encodeRequest: (r, of) => requestTo(r, of, toXaiFields),
    },
  };
};
