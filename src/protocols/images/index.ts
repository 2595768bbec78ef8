// The images protocol, `POST /v1/images/generations` and `/v1/images/edits`: OpenAI's, and that of the hosts that are compatible with it.
// Frontends use its server half, providers its client half. Pure: no I/O, no clock, nothing remembered between two
// methods. May import: model, plugin (types), and the tools its neighbours lend.
import { imageWork } from "../../model/image-work.ts";
import type { JSONSchema } from "json-schema-to-ts";
import editsSchema from "../../../schemas/image-edits.request.json" with { type: "json" };
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
import { objects } from "./client/pictures.ts";
import { prepare } from "./client/prepare.ts";
import { relay } from "./client/relay.ts";
import { request as requestTo } from "./client/request.ts";
import { request } from "./server/request.ts";
import { survey } from "./survey.ts";
import { EDITS, ID, knows } from "./words.ts";
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
      request: (body) => request(body, false),
      stream: (write, to) => stream(write, to),
      whole,
      fault,
      head,
      ping: ": ping\n\n",
    },
    client: {
      paths: {
        generate: "/images/generations",
        ...(dialect.edits && { [EDITS]: "/images/edits" }),
      },
      request: (r, of) => requestTo(r, of),
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

/** The same where pictures come along to be changed: in a form or in JSON, and with events of its own. A route calls it `edits`. */
export const imageEdits = (): Protocol<"image"> => {
  const made = images();
  return {
    ...made,
    server: {
      ...made.server!,
      schema: editsSchema as unknown as JSONSchema,
      request: (body) => request(body, true),
      stream: (write, to) => stream(write, to, "image_edit"),
    },
  };
};

/** Changes of pictures as xAI takes them: at the same path, but in JSON alone and by names of its own. */
export const xaiEdits = (dialect: ImageDialect = {}): Protocol<"image"> => {
  const { work, reviewed, headers, client } = images(dialect);
  const { relay: _, ...rest } = client!;
  return {
    id: "xai-edits",
    work,
    ...(reviewed && { reviewed }),
    ...(headers && { headers }),
    client: {
      ...rest,
      paths: { generate: "/images/edits", [EDITS]: "/images/edits" },
      request: (r, of) => requestTo(r, of, objects),
    },
  };
};
