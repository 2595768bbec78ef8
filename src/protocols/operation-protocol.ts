// Builds the protocols of single operations, such as embeddings and rerank. A protocol of this type
// declares its paths, its fields, and how a request and a response are encoded. All other behavior
// is the same: errors and headers are OpenAI's, a response arrives in one piece, and fields that a
// backend rejects are dropped.
import type { JSONSchema } from "json-schema-to-ts";
import { fail } from "../model/error.ts";
import type { Operation } from "../model/request.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import type { CallContext, ClientHalf, Protocol, ServerHalf } from "../plugin/protocol.ts";
import { parseError } from "./failure/parse-error.ts";
import { encodeRateLimitHeaders, FORWARDED_RESPONSE_HEADERS } from "./response-headers.ts";
import { encodeFault } from "./failure/openai-error.ts";

/** Rejects a stream from a provider. The request was not for one. */
export const failNotStreamed = (): never =>
  fail("upstream", "The provider returned an event stream.", { code: "bad_answer" });

/** Returns an encoder that rejects a client's request for a stream. */
export const failStreamed =
  (responses: string, param = "stream") =>
  (): never =>
    fail("unsupported", `${responses} cannot be streamed.`, { param });

/** Removes fields that the backend rejects with an error, and reports those that had a value. */
export function dropFields(
  out: Outgoing,
  of: CallContext,
  fields: readonly string[] = [],
  noEffect: readonly unknown[] = [null],
): void {
  for (const field of fields) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.remove(field);
    if (!noEffect.includes(value)) of.reportLoss(field, "dropped");
  }
}

type ServerPart<K extends Operation> = Partial<Omit<ServerHalf<K>, "schema">> &
  Pick<ServerHalf<K>, "decodeRequest" | "encodeResponse"> & { readonly schema: object };
type ClientPart<K extends Operation> = Partial<ClientHalf<K>> &
  Pick<ClientHalf<K>, "paths" | "encodeRequest" | "decodeResponse">;

export interface OperationProtocol<K extends Operation> extends Pick<
  Protocol<K>,
  "id" | "operationSpec" | "zdrAllowedFields"
> {
  /** Analyzes a request in both modes: its possible cost and the features that the model needs. */
  readonly analyze?: ServerHalf<K>["analyze"];
  /** The half that faces clients. Without `createEncoder`, responses cannot be streamed. */
  readonly server?: ServerPart<K>;
  /** The half that faces providers. Without `createDecoder`, responses are never streams. */
  readonly client: ClientPart<K>;
  /** Top-level fields that the backend rejects with an error. */
  readonly dropFields?: readonly string[] | undefined;
}

export const operationProtocol = <K extends Operation>({
  analyze,
  server,
  client,
  dropFields: dropped,
  ...of
}: OperationProtocol<K>): Protocol<K> => ({
  ...of,
  headers: { response: FORWARDED_RESPONSE_HEADERS },
  ...(server && {
    server: {
      analyze: analyze!,
      createEncoder: failStreamed("Responses"),
      encodeFault,
      encodeHeaders: encodeRateLimitHeaders,
      ping: "",
      ...server,
      schema: server.schema as JSONSchema,
    },
  }),
  client: {
    ...(analyze && { analyze }),
    createDecoder: failNotStreamed,
    decodeFault: parseError,
    ...client,
    prepare(out, of) {
      client.prepare?.(out, of);
      dropFields(out, of, dropped);
    },
  },
});
