import schema from "../../../schemas/transcriptions.request.json" with { type: "json" };
import { transcriptOperation } from "../../model/operations/transcript-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { operationProtocol } from "../operation-protocol.ts";
import * as client from "./client.ts";
import * as server from "./server.ts";
import {
  analyze,
  formatIn,
  ID,
  isTextFormat,
  knowsField,
  TEXT,
  type TranscriptDialect,
  ZDR_ALLOWED_FIELDS,
} from "./spec.ts";

export type { TranscriptDialect } from "./spec.ts";

export const transcriptions = (dialect: TranscriptDialect = {}): Protocol<"transcript"> =>
  operationProtocol({
    id: ID,
    operationSpec: transcriptOperation,
    zdrAllowedFields: ZDR_ALLOWED_FIELDS,
    analyze,
    dropFields: dialect.dropFields,
    server: {
      schema,
      decodeRequest: server.decodeRequest,
      contentType: ({ stream: streams, body }) =>
        streams
          ? "text/event-stream; charset=utf-8"
          : isTextFormat(formatIn(body))
            ? TEXT
            : "application/json",
      createEncoder: server.createEncoder,
      encodeResponse: server.encodeResponse,
      ping: ": ping\n\n",
    },
    client: {
      paths: {
        generate: "/audio/transcriptions",
        ...(dialect.translates !== false && { translations: "/audio/translations" }),
      },
      encodeRequest: client.encodeRequest,
      knowsField,
      createDecoder: client.createDecoder,
      decodeResponse: client.decodeResponse,
      prepare: (out, of) => client.prepare(out, of, dialect),
      createPassthrough: (sink, to, headers) =>
        client.createPassthrough(sink, to, headers, dialect.formats === false),
    },
  });
