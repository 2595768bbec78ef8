import schema from "../../../schemas/speech.request.json" with { type: "json" };
import { speechOperation } from "../../model/operations/speech-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { operationProtocol } from "../operation-protocol.ts";
import * as client from "./client.ts";
import * as server from "./server.ts";
import { analyze, ID, knowsField, mimeOf, type SpeechDialect, ZDR_ALLOWED_FIELDS } from "./spec.ts";

export type { SpeechDialect } from "./spec.ts";

export const speech = (dialect: SpeechDialect = {}): Protocol<"speech"> =>
  operationProtocol({
    id: ID,
    operationSpec: speechOperation,
    zdrAllowedFields: ZDR_ALLOWED_FIELDS,
    analyze,
    dropFields: dialect.dropFields,
    server: {
      schema,
      decodeRequest: server.decodeRequest,
      contentType: ({ body }) => mimeOf(body),
      createEncoder: server.createEncoder,
      encodeResponse: server.encodeResponse,
      // Truncated audio that ends cleanly would look complete to the client.
      closeOnError: true,
    },
    client: {
      paths: { generate: "/audio/speech" },
      encodeRequest: client.encodeRequest,
      knowsField,
      createDecoder: client.createDecoder,
      decodeResponse: client.decodeResponse,
      prepare: (out, of) => client.prepare(out, of, dialect),
      createPassthrough: client.createPassthrough,
    },
  });
