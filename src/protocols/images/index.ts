// The images protocol, `POST /v1/images/generations`: OpenAI's, and that of the hosts that are compatible with it.
// Frontends use its server half, providers its client half. Pure: no I/O, no clock, nothing remembered between two
// methods. May import: model, plugin (types), and the tools its neighbours lend.
import { imageWork } from "../../model/image-work.ts";
import type { JSONSchema } from "json-schema-to-ts";
import schema from "../../../schemas/images.request.json" with { type: "json" };
import type { CallContext, Protocol } from "../../plugin/protocol.ts";
import { ANSWER_HEADERS } from "../headers.ts";
import { head } from "../limits.ts";
import * as answer from "./server/stream.ts";
import * as decode from "./client/stream.ts";
import { traitsOf, type ImageDialect } from "./dialect.ts";
import { failure } from "../failure/failure.ts";
import { fault } from "./server/fault.ts";
import { prepare } from "./client/prepare.ts";
import { relay } from "./client/relay.ts";
import { encode, ID, knows, request, survey } from "./server/request.ts";

import { REVIEWED } from "./reviewed.ts";

export type { ImageDialect, ImageTraits } from "./dialect.ts";
export { fitting, ratioOf, sizeOf, type Size, type ImageParameters } from "./size.ts";
export { formatOf, sniff, type ImageHead } from "../sniff.ts";

export const images = (dialect: ImageDialect = {}): Protocol<"image"> => {
  const at = (of: CallContext) => traitsOf(dialect, of.model);
  // Where every image is an address, whoever wants bytes needs them fetched: no answer passes as it is.
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
      stream: answer.stream,
      whole: answer.whole,
      fault,
      head,
      ping: ": ping\n\n",
    },
    client: {
      paths: { generate: "/images/generations" },
      request: encode,
      knows,
      survey,
      stream: (emit) => decode.stream(emit),
      whole: (body, emit, of) => decode.whole(body, emit, of),
      fault: failure,
      prepare: (out, of) => prepare(out, of, at(of)),
      ...(responseFormat !== "url" && { relay }),
    },
  };
};
