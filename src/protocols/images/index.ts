// The images protocol, `POST /v1/images/generations`: OpenAI's, and that of the hosts that are compatible with it.
// Frontends use its server half, providers its client half. Pure: no I/O, no clock, nothing remembered between two
// methods. May import: model, plugin (types), and the tools its neighbours lend.
import { imageWork } from "../../model/image-work.ts";
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/images.request.json" with { type: "json" };
import type { CallContext, Protocol } from "../../plugin/protocol.ts";
import { ANSWER_HEADERS } from "../headers.ts";
import { head } from "../limits.ts";
import { stream } from "./server/stream.ts";
import { whole } from "./server/whole.ts";
import { stream as streamFrom } from "./client/stream.ts";
import { whole as wholeFrom } from "./client/whole.ts";
import { traitsOf, type ImageDialect } from "./dialect.ts";
import { failure } from "../failure/failure.ts";
import { fault } from "./server/fault.ts";
import { prepare } from "./client/prepare.ts";
import { relay } from "./client/relay.ts";
import { request as requestTo } from "./client/request.ts";
import { request } from "./server/request.ts";
import { survey } from "./survey.ts";
import { ID, knows } from "./words.ts";
import { REVIEWED } from "./reviewed.ts";

export type { ImageDialect, ImageTraits } from "./dialect.ts";
export { fitting, ratioOf, sizeOf, type Size, type ImageParameters } from "./size.ts";
export { formatOf, sniff, type ImageHead } from "../sniff.ts";

export const images = (dialect: ImageDialect = {}): Protocol<"image"> => {
  const at = (of: CallContext) => traitsOf(dialect, of.model);
  // Where every image is an address, a client that wants bytes needs them fetched: no answer passes as it is.
  const { responseFormat } = dialect;
  return {
    id: ID,
    work: imageWork,
    reviewed: REVIEWED,
    headers: { response: ANSWER_HEADERS },
    server: {
      schema: schema as unknown as JSONSchema,
      survey,
      request: (body) => request(body),
      stream,
      whole,
      fault,
      head,
      ping: ": ping\n\n",
    },
    client: {
      paths: { generate: "/images/generations" },
      request: requestTo,
      knows,
      survey,
      stream: (emit) => streamFrom(emit),
      whole: (body, emit, of) => wholeFrom(body, emit, of),
      fault: failure,
      prepare: (out, of) => prepare(out, of, at(of)),
      ...(responseFormat !== "url" && { relay }),
    },
  };
};
