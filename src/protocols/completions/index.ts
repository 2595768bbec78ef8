import schema from "../../../schemas/completions.request.json" with { type: "json" };
import { completionOperation } from "../../model/operations/completion-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { chatCompletions } from "../chat-completions/index.ts";
import { operationProtocol, type OperationProtocol } from "../operation-protocol.ts";
import * as client from "./client.ts";
import * as server from "./server.ts";
import { analyze, type CompletionDialect, ID, knowsField, ZDR_ALLOWED_FIELDS } from "./spec.ts";

export { singlePrompt } from "./client.ts";
export type { CompletionDialect } from "./spec.ts";

const SHARED = {
  operationSpec: completionOperation,
  zdrAllowedFields: ZDR_ALLOWED_FIELDS,
  analyze,
  client: { knowsField, capOutput: client.capOutput, mayHideReasoning: () => false },
} as const satisfies Partial<Omit<OperationProtocol<"completion">, "client">> & { client: object };

export const completions = (dialect: CompletionDialect = {}): Protocol<"completion"> =>
  operationProtocol({
    ...SHARED,
    id: ID,
    dropFields: dialect.dropFields,
    server: {
      schema,
      decodeRequest: server.decodeRequest,
      createEncoder: server.createEncoder,
      encodeResponse: server.encodeResponse,
      ping: ": ping\n\n",
    },
    client: {
      ...SHARED.client,
      paths: { generate: "/completions" },
      encodeRequest: client.encodeRequest,
      createDecoder: client.createDecoder,
      decodeResponse: client.decodeResponse,
      prepare: (out, of) => client.prepare(out, of, dialect),
      createPassthrough: client.createPassthrough,
    },
  });

/**
 * Mistral's `POST /v1/fim/completions`. Requests have the form of this protocol, responses have the
 * form of chat completions.
 */
export function mistralFim(): Protocol<"completion"> {
  const { createDecoder, decodeResponse } = chatCompletions({ streamUsage: "none" }).client!;
  return operationProtocol({
    ...SHARED,
    id: "mistral-fim",
    client: {
      ...SHARED.client,
      paths: { generate: "/fim/completions" },
      encodeRequest: client.encodeFimRequest,
      createDecoder,
      decodeResponse,
    },
  });
}
