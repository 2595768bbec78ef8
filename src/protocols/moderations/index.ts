// The moderations protocol, `POST /v1/moderations`: OpenAI's, and Mistral's in the same form. Frontends use its server half,
// providers its client half. Pure: no I/O, no clock, nothing remembered between two methods. May import: model, plugin
// (types), and the tools its neighbours lend.
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/moderations.request.json" with { type: "json" };
import { moderationWork } from "../../model/moderation-work.ts";
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
import type { ModerationDialect } from "./dialect.ts";
import { REVIEWED } from "./reviewed.ts";
import { request } from "./server/request.ts";
import { stream } from "./server/stream.ts";
import { whole } from "./server/whole.ts";
import { survey } from "./survey.ts";
import { ID, knows } from "./words.ts";

export type { ModerationDialect } from "./dialect.ts";

export const moderations = (dialect: ModerationDialect = {}): Protocol<"moderation"> => ({
  id: ID,
  work: moderationWork,
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
    ping: "",
  },
  client: {
    paths: { generate: "/moderations" },
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
