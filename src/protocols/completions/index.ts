// The completions protocol, `POST /v1/completions`: OpenAI's older one, which servers of base models and editors speak. Frontends
// use its server half, providers its client half; and the wires of two vendors that fill in the middle of a text. Pure: no I/O,
// no clock, nothing remembered between two methods. May import: model, plugin (types), and the tools its neighbours lend.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/completions.request.json" with { type: "json" };
import { completionWork } from "../../model/completion-work.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { chatCompletions } from "../chat-completions/index.ts";
import { failure } from "../failure/failure.ts";
import { ANSWER_HEADERS } from "../headers.ts";
import { head } from "../limits.ts";
import { fault } from "../responses/server/fault.ts";
import { cap } from "./client/cap.ts";
import { mistralRequest } from "./client/fill-in.ts";
import { prepare } from "./client/prepare.ts";
import { relay } from "./client/relay.ts";
import { request as requestTo } from "./client/request.ts";
import { stream as streamFrom } from "./client/stream.ts";
import { whole as wholeFrom } from "./client/whole.ts";
import type { CompletionDialect } from "./dialect.ts";
import { REVIEWED } from "./reviewed.ts";
import { request } from "./server/request.ts";
import { stream } from "./server/stream.ts";
import { whole } from "./server/whole.ts";
import { survey } from "./survey.ts";
import { ID, knows } from "./words.ts";

export type { CompletionDialect } from "./dialect.ts";
export { onePrompt } from "./client/fill-in.ts";

export const completions = (dialect: CompletionDialect = {}): Protocol<"completion"> => ({
  id: ID,
  work: completionWork,
  reviewed: REVIEWED,
  headers: { response: ANSWER_HEADERS },
  server: {
    schema: schema as unknown as JSONSchema,
    survey,
    request,
    stream,
    whole,
    fault,
    head,
    ping: ": ping\n\n",
  },
  client: {
    paths: { generate: "/completions" },
    request: requestTo,
    knows,
    survey,
    stream: streamFrom,
    whole: wholeFrom,
    fault: failure,
    prepare: (out, of) => prepare(out, of, dialect),
    cap,
    thinks: () => false,
    relay,
  },
});

/** Mistral's, `POST /v1/fim/completions`: asked in words of this protocol, answered in those of chats. */
export function mistralFim(): Protocol<"completion"> {
  const { stream: streamOfChat, whole: wholeOfChat } = chatCompletions({ usage: "none" }).client!;
  return {
    id: "mistral-fim",
    work: completionWork,
    reviewed: REVIEWED,
    client: {
      paths: { generate: "/fim/completions" },
      request: mistralRequest,
      knows,
      survey,
      stream: streamOfChat,
      whole: wholeOfChat,
      fault: failure,
      cap,
      thinks: () => false,
    },
  };
}
