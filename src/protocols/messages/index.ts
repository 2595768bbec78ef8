// The messages protocol, `POST /v1/messages`: what Anthropic's SDKs and Claude Code speak, and some fourteen backends.
// Frontends use its server half, providers its client half; `server/` and `client/` hold one file for each word of the
// contract. Pure: no I/O, no clock, nothing remembered between two methods. May import: model, plugin (types), and the
// tools its neighbours lend.
import { chatWork } from "../../model/chat-work.ts";
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/messages.request.json" with { type: "json" };
import type { CallContext, Path, Protocol } from "../../plugin/protocol.ts";
import { failure } from "../failure/failure.ts";
import { cap } from "./client/cap.ts";
import { count } from "./client/count.ts";
import { prepare, thinks } from "./client/prepare.ts";
import { relay } from "./client/relay.ts";
import { request as encode } from "./client/request.ts";
import { stream as decoder } from "./client/stream.ts";
import { whole as decode } from "./client/whole.ts";
import { ANSWER_HEADERS } from "../headers.ts";
import { settings, type MessagesDialect } from "./dialect.ts";
import { REVIEWED, REVIEWED_HEADERS } from "./reviewed.ts";
import { conversation } from "./server/conversation.ts";
import { fault as refusal, head } from "./server/fault.ts";
import { request } from "./server/request.ts";
import { stream } from "./server/stream.ts";
import { whole } from "./server/whole.ts";
import { MESSAGES, spelt } from "../spelling.ts";
import { survey } from "./survey.ts";
import { COUNTED } from "./tool-counts.ts";
import { ID, knows } from "./words.ts";

export { claude } from "./claude.ts";
export type { MessagesDialect, MessagesTraits } from "./dialect.ts";

/** What a count and a message both need: the frontend asks for `max_tokens` where there is something to bound. */
const shared = {
  ...schema,
  required: schema.required.filter((field) => field !== "max_tokens"),
} as unknown as JSONSchema;

/** What Anthropic reads of its own clients; for other backends only the version means something. */
const REQUEST = [
  "anthropic-version",
  "anthropic-beta",
  "anthropic-dangerous-direct-browser-access",
  "x-app",
  "x-claude-code-*",
];

export const messages = (dialect: MessagesDialect = {}): Protocol<"chat"> => {
  const at = (of: CallContext) => settings(dialect, of.model);
  const { signer, betas, counts } = settings(dialect, "");
  const path =
    (path: string): Path =>
    (of) =>
      betas && of.query.get("beta") === "true" ? `${path}?beta=true` : path;
  return {
    id: ID,
    work: chatWork,
    reviewed: REVIEWED,
    headers: {
      request: betas ? REQUEST : REQUEST.slice(0, 1),
      response: ANSWER_HEADERS,
      reviewed: REVIEWED_HEADERS,
    },
    server: {
      schema: shared,
      survey,
      conversation,
      request: (body) => request(body),
      stream,
      whole,
      spelling: (field, body) => spelt(MESSAGES, field, body),
      fault: refusal,
      count: (tokens) => ({ input_tokens: tokens }),
      head,
      ping: 'event: ping\ndata: {"type":"ping"}\n\n',
    },
    client: {
      paths: {
        generate: path("/messages"),
        ...(counts && { count: path("/messages/count_tokens") }),
      },
      request: (r, of) => encode(r, of, at(of)),
      knows,
      survey,
      stream: (emit) => decoder(emit, signer),
      whole: (body, emit) => decode(body, emit, signer),
      fault: failure,
      ...(counts && { count }),
      prepare: (out, of) => prepare(out, of, at(of)),
      cap,
      thinks: (out, of) => thinks(out, at(of)),
      tools: COUNTED,
      relay,
    },
  };
};
