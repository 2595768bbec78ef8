// tollgate/protocols/cohere: Cohere's own API, version 2, as far as its compatibility API does not say it. Client halves alone.
// Pure: no I/O, no clock, nothing remembered between two methods. May import: model, plugin (types), and the tools its
// neighbours lend.
import { embeddingWork } from "../../model/embedding-work.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { notStreamed } from "../embeddings/index.ts";
import { failure } from "../failure/failure.ts";
import { plain } from "../look/index.ts";
import { knows, request, whole } from "./embed.ts";

/** `POST /v2/embed`. */
export const cohereEmbeddings = (): Protocol<"embedding"> => ({
  id: "cohere-embed",
  work: embeddingWork,
  reviewed: [
    ["which model", plain("model")],
    ["what is to be embedded, and what for", plain("texts input_type")],
    ["the form of the vectors", plain("embedding_types output_dimension")],
    ["what becomes of a text that is too long", plain("truncate")],
  ],
  client: {
    paths: { generate: "/embed" },
    request,
    knows,
    stream: notStreamed,
    whole,
    fault: failure,
  },
});
