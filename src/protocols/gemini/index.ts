// The gemini protocol, `generateContent` and its stream: what Google's SDKs and Gemini CLI speak, and Google's API. The model, the
// verb and the form of a stream stand in the address: a frontend puts them beside the body. Pure: no I/O, no clock, nothing remembered between two methods. May import:
// model, plugin (types), and the tools its neighbours lend.
import { chatWork } from "../../model/chat-work.ts";
import { imageWork } from "../../model/image-work.ts";
import type { HeadersIn } from "../../model/values.ts";
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/gemini.request.json" with { type: "json" };
import type { CallContext, Path, Protocol, ServerHalf } from "../../plugin/protocol.ts";
import { traitsOf, type GeminiDialect } from "./dialect.ts";
import { failure } from "../failure/failure.ts";
import { onlyPictures, request as draw } from "./client/image.ts";
import { cap } from "./client/cap.ts";
import { count } from "./client/count.ts";
import { prepare } from "./client/prepare.ts";
import { GeminiReader, type GeminiReaderOptions } from "./client/reader.ts";
import { MOST_STOPS, request } from "./client/request.ts";
import { relay } from "./client/relay.ts";
import { tierOf } from "./client/tap.ts";
import { ANSWER_HEADERS } from "../headers.ts";
import { REVIEWED } from "./reviewed.ts";
import { conversation } from "./server/conversation.ts";
import { fault as refusal, head } from "./server/fault.ts";
import { request as decoded } from "./server/request.ts";
import { stream as encoder } from "./server/stream.ts";
import { whole as written } from "./server/whole.ts";
import { GEMINI, spelt } from "../spelling.ts";
import { stream } from "./client/stream.ts";
import { placed } from "./placed.ts";
import { whole } from "./client/whole.ts";
import { mayThink } from "../spending.ts";
import { survey } from "./survey.ts";
import { COUNTED } from "./tool-counts.ts";
import { ID, isListed, knows } from "./words.ts";

export type { GeminiDialect, GeminiTraits } from "./dialect.ts";
export { geminiEmbedding, geminiEmbeddingOne } from "./embedding.ts";
export { taskWord } from "./tasks.ts";

export const gemini = (dialect: GeminiDialect = {}): Protocol<"chat"> => ({
  id: ID,
  work: chatWork,
  reviewed: REVIEWED,
  headers: { response: ANSWER_HEADERS },
  server: server({ ping: " ", pingOpens: "data: " }),
  client: {
    paths: { generate, count: (of) => `/${placed(of.model)}:countTokens` },
    request: (r, of) => request(r, of, traitsOf(dialect, of.model)),
    knows,
    survey,
    stream: (emit, of, headers) => stream(new GeminiReader(emit, of, said(headers, false))),
    whole: (body, emit, of, headers) =>
      whole(body, new GeminiReader(emit, of, said(headers, false))),
    fault: failure,
    count,
    prepare,
    stops: MOST_STOPS,
    cap,
    thinks: (out, of) =>
      mayThink(out, traitsOf(dialect, of.model).off === false ? [] : ["generationConfig"]),
    tools: COUNTED,
    relay,
  },
});

/** The same, where a stream is one JSON list that grows: without `alt=sse`. Between two of its elements there may be space. */
export const geminiListed = (): Protocol<"chat"> => ({
  ...gemini(),
  server: server({ ping: "\n" }),
});

/**
 * A ping is a space at the beginning of the next event. Google's SDKs count every event as a chunk, and the older ones fail on a
 * comment: Python's reads it as JSON, JavaScript's finds no event after it.
 */
type GeminiPing = Pick<ServerHalf<"chat">, "ping" | "pingOpens">;

const server = (pings: GeminiPing): ServerHalf<"chat"> => ({
  schema: schema as unknown as JSONSchema,
  survey,
  conversation,
  request: (body) => decoded(body),
  type: ({ stream: streams, body }) =>
    streams && !isListed(body) ? "text/event-stream" : "application/json",
  stream: encoder,
  whole: written,
  spelling: (field, body) => spelt(GEMINI, field, body),
  fault: refusal,
  count: (tokens) => ({ totalTokens: tokens }),
  head,
  ...pings,
  // Two clients read past an error in a stream, and take its end for the end of the answer.
  cuts: true,
});

/** The same wire, asked for pictures. */
export const geminiImage = (): Protocol<"image"> => ({
  id: `${ID}-image`,
  work: imageWork,
  reviewed: REVIEWED,
  client: {
    // Pictures that come along are parts of what is asked.
    paths: { generate, edits: generate },
    request: draw,
    knows,
    survey,
    stream: (emit, of, headers) =>
      stream(new GeminiReader(onlyPictures(emit), of, said(headers, true))),
    whole: (body, emit, of, headers) =>
      whole(body, new GeminiReader(onlyPictures(emit), of, said(headers, true))),
    fault: failure,
    prepare,
  },
});

/** Without `alt=sse` a stream is one JSON list that grows. */
const generate: Path = (of: CallContext) =>
  `/${placed(of.model)}:${of.stream ? "streamGenerateContent?alt=sse" : "generateContent"}`;

const said = (headers: HeadersIn, draws: boolean): GeminiReaderOptions => ({
  draws,
  tier: tierOf(headers),
});
