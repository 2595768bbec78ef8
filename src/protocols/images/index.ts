import type { JSONSchema } from "json-schema-to-ts";
import { imageOperation } from "../../model/operations/image-operation.ts";
import editsSchema from "../../../schemas/image-edits.request.json" with { type: "json" };
import schema from "../../../schemas/images.request.json" with { type: "json" };
import type { CallContext, Protocol } from "../../plugin/protocol.ts";
import { operationProtocol } from "../operation-protocol.ts";
import * as client from "./client.ts";
import { createPassthrough } from "./passthrough.ts";
import * as server from "./server.ts";
import {
  analyze,
  EDITS,
  ID,
  type ImageDialect,
  knowsField,
  traitsOf,
  ZDR_ALLOWED_FIELDS,
} from "./spec.ts";

export { requireSupported, ratioOf, sizeOf, type Size, type ImageParameters } from "./size.ts";
export type { ImageDialect, ImageTraits } from "./spec.ts";
export { formatOf, sniffImage, type ImageHead } from "../sniff-image.ts";

export const images = (dialect: ImageDialect = {}): Protocol<"image"> => {
  const at = (of: CallContext) => traitsOf(dialect, of.model);
  return operationProtocol({
    id: ID,
    operationSpec: imageOperation,
    zdrAllowedFields: ZDR_ALLOWED_FIELDS,
    analyze,
    server: {
      schema,
      decodeRequest: (body) => server.decodeRequest(body, false),
      createEncoder: (write, to) => server.createEncoder(write, to),
      encodeResponse: server.encodeResponse,
      encodeFault: server.encodeFault,
      ping: ": ping\n\n",
    },
    client: {
      paths: {
        generate: "/images/generations",
        ...(dialect.edits && { [EDITS]: "/images/edits" }),
      },
      encodeRequest: (r, of) => client.encodeRequest(r, of),
      knowsField,
      createDecoder: client.createDecoder,
      decodeResponse: client.decodeResponse,
      prepare: (out, of) => client.prepare(out, of, at(of)),
      // If the backend returns only URLs, the gateway must fetch the bytes that a client requests.
      // Passthrough mode is then not available.
      ...(dialect.responseFormat !== "url" && { createPassthrough }),
    },
  });
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
      decodeRequest: (body) => server.decodeRequest(body, true),
      createEncoder: (write, to) => server.createEncoder(write, to, "image_edit"),
    },
  };
};

/**
 * xAI's protocol for editing images. It has the same path, but accepts only JSON and has different
 * field names.
 */
export const xaiImageEdits = (dialect: ImageDialect = {}): Protocol<"image"> => {
  const { server: _server, client: half, ...of } = images(dialect);
  const { createPassthrough: _, ...rest } = half!;
  return {
    ...of,
    id: "xai-edits",
    client: {
      ...rest,
      paths: { generate: "/images/edits", [EDITS]: "/images/edits" },
      encodeRequest: (r, of) => client.encodeRequest(r, of, client.toXaiFields),
    },
  };
};
