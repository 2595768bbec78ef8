// tollgate/protocols/chat-completions: OpenAI's chat completions, and the dialects of all backends that speak it. Both
// halves: `server/` is what frontends use, `client/` what providers use. Pure: no I/O, no clock. May import: lib, model,
// plugin (types), and the other modules of this floor.
import { chatWork } from "../../model/chat-work.ts";
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/chat-completions.request.json" with { type: "json" };
import type { Protocol } from "../../plugin/index.ts";
import { fault as faultFrom } from "./client/fault.ts";
import { cap } from "./client/cap.ts";
import { prepare } from "./client/prepare.ts";
import { relay } from "./client/relay.ts";
import { MOST_STOPS, request as requestTo } from "./client/request.ts";
import { stream as streamFrom } from "./client/stream.ts";
import { whole as wholeFrom } from "./client/whole.ts";
import type { ChatDialect } from "./dialect.ts";
import { traitsOf } from "./dialect.ts";
import { REVIEWED } from "./reviewed.ts";
import { conversation } from "./server/conversation.ts";
import { fault } from "./server/fault.ts";
import { ANSWER_HEADERS } from "../headers.ts";
import { head } from "../limits.ts";
import { knows, request } from "./server/request.ts";
import { stream } from "./server/stream.ts";
import { CHAT, spelt } from "../spelling.ts";
import { offFields } from "./client/thinking.ts";
import { mayThink } from "../spending.ts";
import { survey } from "./survey.ts";
import { whole } from "./server/whole.ts";
import { ID } from "./words.ts";

export type { ChatDialect, ChatTraits, ReasoningTraits } from "./dialect.ts";

export const chatCompletions = (dialect: ChatDialect = {}): Protocol<"chat"> => ({
  id: ID,
  work: chatWork,
  reviewed: REVIEWED,
  headers: {
    request: ["x-client-request-id", "x-session-affinity"],
    response: ANSWER_HEADERS,
  },
  server: {
    schema: schema as unknown as JSONSchema,
    survey,
    conversation,
    request,
    stream,
    whole,
    spelling: (field, body) => spelt(CHAT, field, body),
    fault,
    head,
    ping: ": ping\n\n",
  },
  client: {
    paths: { generate: "/chat/completions" },
    request: (r, of) => requestTo(r, of, dialect),
    knows,
    survey,
    stream: (emit, of) => streamFrom(emit, of, dialect),
    whole: (body, emit, of) => wholeFrom(body, emit, of, dialect),
    fault: faultFrom,
    prepare: (out, of) => prepare(out, of, dialect),
    stops: MOST_STOPS,
    cap: (out, tokens) => cap(out, tokens, dialect),
    thinks: (out, of) => mayThink(out, offFields(of, traitsOf(dialect, of.model))),
    relay: (sink, to) => relay(sink, to, dialect),
  },
});
