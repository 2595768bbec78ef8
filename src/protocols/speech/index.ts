// The speech protocol, `POST /v1/audio/speech`: OpenAI's, and that of the hosts that are compatible with it. JSON comes in, and sound
// goes out as it comes. Frontends use its server half, providers its client half. Pure: no I/O, no clock, nothing remembered
// between two methods. May import: model, plugin (types), and the tools its neighbours lend.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/speech.request.json" with { type: "json" };
import { speechWork } from "../../model/speech-work.ts";
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
import type { SpeechDialect } from "./dialect.ts";
import { REVIEWED } from "./reviewed.ts";
import { request } from "./server/request.ts";
import { stream } from "./server/stream.ts";
import { whole } from "./server/whole.ts";
import { survey } from "./survey.ts";
import { ID, knows, mimeOf } from "./words.ts";

export type { SpeechDialect } from "./dialect.ts";

export const speech = (dialect: SpeechDialect = {}): Protocol<"speech"> => ({
  id: ID,
  work: speechWork,
  reviewed: REVIEWED,
  headers: { response: ANSWER_HEADERS },
  server: {
    schema: schema as unknown as JSONSchema,
    survey,
    request,
    type: ({ body }) => mimeOf(body),
    stream,
    whole,
    fault,
    head,
    ping: "",
    // Half of a sound that ends well would be taken for all of it.
    cuts: true,
  },
  client: {
    paths: { generate: "/audio/speech" },
    request: requestTo,
    knows,
    survey,
    stream: streamFrom,
    whole: wholeFrom,
    fault: failure,
    prepare: (out, of) => prepare(out, of, dialect),
    relay,
  },
});
