// The rerank protocol, `POST /v2/rerank` and `/v1/rerank`: Cohere's, Jina's, and that of the servers that took it over; and
// Voyage's, which differs in a few words. Frontends use their server halves, providers their client halves. Pure: no I/O, no
// clock, nothing remembered between two methods. May import: model, plugin (types), and the tools its neighbours lend.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/rerank.request.json" with { type: "json" };
import { rerankWork } from "../../model/rerank-work.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { failure } from "../failure/failure.ts";
import { ANSWER_HEADERS } from "../headers.ts";
import { head } from "../limits.ts";
import { prepare } from "./client/prepare.ts";
import { relay } from "./client/relay.ts";
import { request as requestTo, voyageRequest } from "./client/request.ts";
import { stream as streamFrom } from "./client/stream.ts";
import { whole as wholeFrom } from "./client/whole.ts";
import type { RerankDialect } from "./dialect.ts";
import { REVIEWED } from "./reviewed.ts";
import { fault } from "./server/fault.ts";
import { request } from "./server/request.ts";
import { stream } from "./server/stream.ts";
import { voyageWhole, whole } from "./server/whole.ts";
import { survey } from "./survey.ts";
import { ID, knows, VOYAGE_ID } from "./words.ts";

export type { RerankDialect } from "./dialect.ts";
export { fault as faultForAll } from "./server/fault.ts";

const server = {
  schema: schema as unknown as JSONSchema,
  survey,
  request,
  stream,
  fault,
  head,
  ping: "",
};
const client = {
  paths: { generate: "/rerank" },
  knows,
  survey,
  stream: streamFrom,
  whole: wholeFrom,
  fault: failure,
};

export const rerank = (dialect: RerankDialect = {}): Protocol<"rerank"> => ({
  id: ID,
  work: rerankWork,
  reviewed: REVIEWED,
  headers: { response: ANSWER_HEADERS },
  server: { ...server, whole },
  client: {
    ...client,
    request: requestTo,
    prepare: (out, of) => prepare(out, of, dialect),
    relay,
  },
});

/** Voyage's words for the same. Always written anew: its answers are short. */
export const voyageRerank = (): Protocol<"rerank"> => ({
  id: VOYAGE_ID,
  work: rerankWork,
  reviewed: REVIEWED,
  server: { ...server, whole: voyageWhole },
  client: { ...client, request: voyageRequest },
});
