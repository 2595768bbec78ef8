// The embeddings protocol, `POST /v1/embeddings`: OpenAI's, and that of the hosts that are compatible with it. Frontends use its
// server half, providers its client half. Pure: no I/O, no clock, nothing remembered between two methods. May import: model,
// plugin (types), and the tools its neighbours lend.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/embeddings.request.json" with { type: "json" };
import { embeddingWork } from "../../model/embedding-work.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { failure } from "../failure/failure.ts";
import { ANSWER_HEADERS } from "../headers.ts";
import { head } from "../limits.ts";
import { fault } from "../responses/server/fault.ts";
import { prepare } from "./client/prepare.ts";
import { relay } from "./client/relay.ts";
import { request as requestTo } from "./client/request.ts";
import { stream as notStreamed } from "./client/stream.ts";
import { emitVectors, whole as wholeFrom } from "./client/whole.ts";
import type { EmbeddingDialect } from "./dialect.ts";
import { REVIEWED } from "./reviewed.ts";
import { request } from "./server/request.ts";
import { stream } from "./server/stream.ts";
import { whole } from "./server/whole.ts";
import { survey } from "./survey.ts";
import { ID, knows } from "./words.ts";

export type { EmbeddingDialect } from "./dialect.ts";
export { taskOf, wordFor, type TaskWords } from "./tasks.ts";
export { emitVectors, notStreamed };
export { foreign } from "./foreign.ts";
export { textsOnly } from "./texts.ts";
export { checked, inputsIn, typeIn, vectorOf, wishOf, written, type Wish } from "./vectors.ts";
export { stream as inOnePiece, request as requestIn, survey as surveyIn };

export const embeddings = (dialect: EmbeddingDialect = {}): Protocol<"embedding"> => ({
  id: ID,
  work: embeddingWork,
  reviewed: REVIEWED,
  headers: { response: ANSWER_HEADERS },
  server: {
    schema: schema as unknown as JSONSchema,
    survey,
    request: (body) => request(body),
    stream,
    whole,
    fault,
    head,
    ping: "",
  },
  client: {
    paths: { generate: "/embeddings" },
    request: requestTo,
    knows,
    survey,
    stream: notStreamed,
    whole: wholeFrom,
    fault: failure,
    prepare: (out, of) => prepare(out, of, dialect),
    relay,
  },
});
