// tollgate/protocols/responses: `POST /v1/responses`, both halves, and what goes with it. Items in place of messages, a
// stream whose every event is numbered and named, and state, which this service relays only where no client can reach
// another's. Pure: no I/O, no clock, nothing remembered between two methods. May import: lib, model, plugin, its
// neighbours' common parts.
import { chatWork } from "../../model/chat-work.ts";
import type { JSONSchema } from "json-schema-to-ts";
import { REVIEWED } from "./reviewed.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import schema from "../../../schemas/responses.request.json" with { type: "json" };
import { request as requestTo } from "./client/request.ts";
import { bound } from "./client/bound.ts";
import { cap } from "./client/cap.ts";
import { count } from "./client/count.ts";
import { stream as streamFrom } from "./client/stream.ts";
import { whole as wholeFrom } from "./client/whole.ts";
import type { ResponsesDialect } from "./dialect.ts";
import { ANSWER_HEADERS } from "../headers.ts";
import { head } from "../limits.ts";
import { failure } from "../failure/failure.ts";
import { conversation } from "./server/conversation.ts";
import { fault } from "./server/fault.ts";
import { prepare } from "./client/prepare.ts";
import { relay } from "./client/relay.ts";
import { knows, request } from "./server/request.ts";
import { stream } from "./server/stream.ts";
import { whole } from "./server/whole.ts";
import { mayThink } from "../spending.ts";
import { RESPONSES, spelt } from "../spelling.ts";
import { survey } from "./survey.ts";
import { COUNTED } from "./tool-counts.ts";
import { ORIGIN } from "./words.ts";

export type { ResponsesDialect } from "./dialect.ts";
export { noItem, noPrevious, noResponse } from "./state.ts";

export function responses(dialect: ResponsesDialect = {}): Protocol<"chat"> {
  const by = (tail: string) => (of: { params: { readonly [name: string]: string } }) =>
    `/responses/${encodeURIComponent(of.params["id"] ?? "")}${tail}`;
  return {
    id: ORIGIN,
    work: chatWork,
    reviewed: REVIEWED,
    headers: {
      request: ["openai-beta"],
      response: ANSWER_HEADERS,
      reviewed: { "openai-beta": ["responses=experimental"] },
    },
    server: {
      schema: schema as JSONSchema,
      survey,
      conversation,
      request: (body) => request(body),
      stream: (write, to) => stream(write, to, dialect),
      whole: (answer, to) => whole(answer, to, dialect),
      spelling: (field, body) => spelt(RESPONSES, field, body),
      fault,
      count: (tokens) => ({ object: "response.input_tokens", input_tokens: tokens }),
      head,
      ping: ": ping\n\n",
    },
    client: {
      paths: {
        generate: "/responses",
        count: "/responses/input_tokens",
        retrieve: by(""),
        delete: by(""),
        input_items: by("/input_items"),
      },
      request: (r, of) => requestTo(r, of, dialect),
      knows,
      survey,
      stream: (emit, _of, headers) => streamFrom(emit, headers),
      whole: (body, emit) => wholeFrom(body, emit),
      fault: failure,
      count,
      bound,
      prepare: (out, of) => prepare(out, of, dialect),
      // The API has no field for them.
      stops: 0,
      cap,
      thinks: (out) => mayThink(out, ["reasoning"]),
      tools: COUNTED,
      relay,
    },
  };
}
