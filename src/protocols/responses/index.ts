// tollgate/protocols/responses: `POST /v1/responses`, both halves, and what goes with it. Items in place of messages, a
// stream whose every event is numbered and named, and state, which this service relays only where nobody can reach
// another's. Pure: no I/O, no clock, nothing remembered between two methods. May import: lib, model, plugin, its
// neighbours' common parts.
import { chatWork } from "../../model/chat-work.ts";
import type { JSONSchema } from "json-schema-to-ts";
import { REVIEWED } from "./reviewed.ts";
import { fail } from "../../model/error.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import schema from "../../../schemas/responses.request.json" with { type: "json" };
import { bodyOf } from "./client/request.ts";
import { decodeStream, decodeWhole } from "./client/stream.ts";
import type { ResponsesDialect } from "./dialect.ts";
import { ANSWER_HEADERS } from "../headers.ts";
import { head } from "../limits.ts";
import { failure } from "../failure/failure.ts";
import { fault } from "./server/fault.ts";
import { prepare } from "./client/prepare.ts";
import { relay } from "./client/relay.ts";
import { knows, request } from "./server/request.ts";
import { stream } from "./server/stream.ts";
import { whole } from "./server/whole.ts";
import { asksThought } from "../spending.ts";
import { RESPONSES, spelt } from "../spelling.ts";
import { survey } from "./survey.ts";
import { number, parsed } from "../json.ts";
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
    },
    server: {
      schema: schema as JSONSchema,
      survey,
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
      request: (r, of) => bodyOf(r, of, dialect),
      knows,
      survey,
      stream: (emit, _of, headers) => decodeStream(emit, headers),
      whole: (body, emit) => decodeWhole(body, emit),
      fault: failure,
      count: (body) =>
        number(parsed(body.toString("utf8"))?.["input_tokens"]) ??
        fail("upstream", "The provider's count has no input_tokens.", { code: "bad_answer" }),
      prepare: (out, of) => prepare(out, of, dialect),
      cap(out, tokens) {
        const asked = number(out.get("max_output_tokens"));
        if (asked === undefined || asked > tokens) out.set("max_output_tokens", tokens);
      },
      thinks: (out) => asksThought((field) => out.get(field)) !== "off",
      relay,
    },
  };
}
