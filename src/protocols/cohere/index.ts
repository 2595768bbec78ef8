// tollgate/protocols/cohere: Cohere's own API, version 2, where its compatibility API has no counterpart.
// Pure: no I/O, no clock, nothing remembered between two methods. May import: model, plugin (types), and the tools its
// neighbours lend.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/cohere-embed.request.json" with { type: "json" };
import { embeddingWork } from "../../model/embedding-work.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { inOnePiece, notStreamed } from "../embeddings/index.ts";
import { failure } from "../failure/failure.ts";
import { plain } from "../look/index.ts";
import { head } from "../limits.ts";
import { faultForAll } from "../rerank/index.ts";
import { request as requestTo, whole } from "./embed.ts";
import { request, survey, whole as written } from "./server.ts";
import { ID, knows } from "./words.ts";

/** `POST /v2/embed`. */
export const cohereEmbeddings = (): Protocol<"embedding"> => ({
  id: ID,
  work: embeddingWork,
  reviewed: [
    ["which model", plain("model")],
    ["what is to be embedded, and what for", plain("texts input_type")],
    ["the form of the vectors", plain("embedding_types output_dimension")],
    ["what becomes of a text that is too long", plain("truncate")],
  ],
  server: {
    schema: schema as unknown as JSONSchema,
    survey,
    request: (body) => request(body),
    stream: inOnePiece,
    whole: written,
    fault: faultForAll,
    head,
    ping: "",
  },
  client: {
    paths: { generate: "/embed" },
    request: requestTo,
    knows,
    stream: notStreamed,
    whole,
    fault: failure,
  },
});
