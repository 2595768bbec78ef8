// The transcription protocol, `POST /v1/audio/transcriptions` and `…/translations`: OpenAI's, and that of the hosts that are compatible
// with it. A form with a file comes in; JSON, plain words, captions or events go out. Frontends use its server half, providers
// its client half. Pure: no I/O, no clock, nothing remembered between two methods. May import: model, plugin (types), and the
// tools its neighbours lend.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/transcriptions.request.json" with { type: "json" };
import { transcriptWork } from "../../model/transcript-work.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { failure } from "../failure/failure.ts";
import { ANSWER_HEADERS } from "../headers.ts";
import { head } from "../limits.ts";
import { fault } from "../responses/server/fault.ts";
import { prepare } from "./client/prepare.ts";
import { relay } from "./client/relay.ts";
import { request as requestTo } from "./client/request.ts";
import { stream as streamFrom } from "./client/stream.ts";
import { whole as wholeFrom } from "./client/whole.ts";
import type { TranscriptDialect } from "./dialect.ts";
import { REVIEWED } from "./reviewed.ts";
import { request } from "./server/request.ts";
import { stream } from "./server/stream.ts";
import { whole } from "./server/whole.ts";
import { survey } from "./survey.ts";
import { formatIn, ID, isPlain, knows, TEXT } from "./words.ts";

export type { TranscriptDialect } from "./dialect.ts";

export const transcriptions = (dialect: TranscriptDialect = {}): Protocol<"transcript"> => ({
  id: ID,
  work: transcriptWork,
  reviewed: REVIEWED,
  headers: { response: ANSWER_HEADERS },
  server: {
    schema: schema as unknown as JSONSchema,
    survey,
    request,
    type: ({ stream: streams, body }) =>
      streams
        ? "text/event-stream; charset=utf-8"
        : isPlain(formatIn(body))
          ? TEXT
          : "application/json",
    stream,
    whole,
    fault,
    head,
    ping: ": ping\n\n",
  },
  client: {
    paths: {
      generate: "/audio/transcriptions",
      ...(dialect.translates !== false && { translations: "/audio/translations" }),
    },
    request: requestTo,
    knows,
    survey,
    stream: streamFrom,
    whole: wholeFrom,
    fault: failure,
    prepare: (out, of) => prepare(out, of, dialect),
    relay: (sink, to, headers) => relay(sink, to, headers, dialect.formats === false),
  },
});
