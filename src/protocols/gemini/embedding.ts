// The two ways in which this API is asked for vectors, `batchEmbedContents` and `embedContent`: two wires, since the answers differ.
import type { JSONSchema } from "json-schema-to-ts";
import one from "../../../schemas/gemini-embedding-one.request.json" with { type: "json" };
import many from "../../../schemas/gemini-embedding.request.json" with { type: "json" };
import { embeddingWork } from "../../model/embedding-work.ts";
import type { Review } from "../../plugin/index.ts";
import type { Protocol, ServerHalf } from "../../plugin/protocol.ts";
import { notStreamed } from "../embeddings/index.ts";
import { failure } from "../failure/failure.ts";
import { ANSWER_HEADERS } from "../headers.ts";
import { plain } from "../look/index.ts";
import { GEMINI_VECTORS, spelt } from "../spelling.ts";
import * as asked from "./client/embedding.ts";
import { prepareVectors } from "./client/prepare.ts";
import { reviewedInBoth } from "./one-spelling.ts";
import { placed } from "./placed.ts";
import * as told from "./server/embedding.ts";
import { fault, head } from "./server/fault.ts";

const ASKED = {
  ...plain("model taskType title outputDimensionality"),
  content: { role: "plain", parts: plain("text") },
} as const;
const reviewed = (fields: Review[number][1]): Review =>
  reviewedInBoth([["what is to be embedded, what for, and the form of the vectors", fields]]);

/** Vectors of one text or of many. */
export const geminiEmbedding = (): Protocol<"embedding"> => ({
  id: "gemini-embedding",
  work: embeddingWork,
  reviewed: reviewed({ ...plain("model"), requests: ASKED }),
  headers: { response: ANSWER_HEADERS },
  server: server(many, told.several),
  client: {
    paths: { generate: (of) => `/${placed(of.model)}:batchEmbedContents` },
    request: asked.requests,
    ...CLIENT,
    whole: asked.whole(asked.several),
    relay: asked.relay(asked.several),
  },
});

/** The vector of one content. */
export const geminiEmbeddingOne = (): Protocol<"embedding"> => ({
  id: "gemini-embedding-one",
  work: embeddingWork,
  reviewed: reviewed(ASKED),
  headers: { response: ANSWER_HEADERS },
  server: server(one, told.single),
  client: {
    paths: { generate: (of) => `/${placed(of.model)}:embedContent` },
    request: asked.request,
    ...CLIENT,
    whole: asked.whole(asked.single),
    relay: asked.relay(asked.single),
  },
});

const CLIENT = {
  knows: asked.knows,
  survey: told.survey,
  stream: notStreamed,
  fault: failure,
  prepare: prepareVectors,
} as const;

const server = (
  schema: object,
  whole: ServerHalf<"embedding">["whole"],
): ServerHalf<"embedding"> => ({
  schema: schema as unknown as JSONSchema,
  survey: told.survey,
  request: (body) => told.request(body),
  stream: told.stream,
  whole,
  spelling: (field, body) => spelt(GEMINI_VECTORS, field, body),
  fault,
  head,
  ping: "",
});
