// Claude by InvokeModel: the messages protocol without `model` and `stream`, which stand in the address, with the version in the
// body, and with its events in binary frames. Equal id, so a messages client's bytes travel as they came.
import type {
  CallContext,
  ClientHalf,
  Decoder,
  HeadersIn,
  Outgoing,
  Protocol,
  PassthroughStream,
  FieldAllowlist,
} from "tollgate/plugin";
import { valueFields } from "tollgate/protocols/references";
import { claude, messages } from "tollgate/protocols/messages";
import { nameIn } from "./converse/stream.ts";
import { createFrameReader } from "./event-stream.ts";
import { parsed, textOf } from "./json.ts";
import { modelPath } from "./model-path.ts";
import { parseAwsError } from "./errors.ts";

/** What Bedrock has taken from the beginning. A client that names a newer date is answered in that. */
const VERSION = "bedrock-2023-05-31";
/** Anthropic's own first version, which all its clients named for years: Bedrock has another name for it. */
const FIRST_ANTHROPIC_VERSION = "2023-06-01";

const REVIEWED: FieldAllowlist = [
  ["its version, and what it may try", valueFields("anthropic_version anthropic_beta")],
];

/** The name that Anthropic has for a model: profiles, ARNs and ids of the service have it in them. */
export const bareName = (model: string): string =>
  /(?:^|[./])anthropic\.(claude[^/]*)$/.exec(model)?.[1] ?? model;

export const isClaude = (model: string): boolean => bareName(model) !== model;

/** `betas`: which of the beta features that clients ask for are asked of Bedrock. */
export function bedrockClaude(betas: readonly string[]): Protocol<"chat"> {
  const own = messages({ ...claude, countsTokens: false });
  const client = own.client as ClientHalf<"chat">;
  return {
    ...own,
    zdrAllowedFields: [...own.zdrAllowedFields!, ...REVIEWED],
    client: {
      ...client,
      paths: {
        generate: (of) => modelPath(of.model, of.stream ? "invoke-with-response-stream" : "invoke"),
      },
      encodeRequest: (r, of) => client.encodeRequest(r, withAnthropicName(of)),
      createDecoder(emit, of, headers) {
        const inner = client.createDecoder(emit, withAnthropicName(of), headers);
        return isFramed(headers) ? createUnframingDecoder(inner) : inner;
      },
      createPassthrough(sink, to, headers) {
        const inner = client.createPassthrough!(sink, to, headers);
        return to.stream && isFramed(headers) ? unframedPassthrough(inner) : inner;
      },
      decodeFault: parseAwsError,
      prepare(out, of) {
        client.prepare?.(out, withAnthropicName(of));
        moveHeadersToBody(out, of, betas);
      },
      mayHideReasoning: (out, of) => client.mayHideReasoning!(out, withAnthropicName(of)),
    },
  };
}

/** The same call, under the name by which it is known what the model takes. */
export const withAnthropicName = (of: CallContext): CallContext => ({
  actionType: of.actionType,
  action: of.action,
  model: bareName(of.model),
  info: of.info,
  stream: of.stream,
  params: of.params,
  query: of.query,
  stateMode: of.stateMode,
  reportLoss: (field, how, code) => of.reportLoss(field, how, code),
});

/** What stands in headers elsewhere stands in the body here. */
function moveHeadersToBody(out: Outgoing, of: CallContext, betas: readonly string[]): void {
  out.remove("model");
  out.remove("stream");
  const versionHeader = out.headers["anthropic-version"];
  if (out.get("anthropic_version") === undefined)
    out.set(
      "anthropic_version",
      versionHeader !== undefined && versionHeader > FIRST_ANTHROPIC_VERSION
        ? versionHeader
        : VERSION,
    );
  const asked = (out.headers["anthropic-beta"] ?? "")
    .split(",")
    .map((beta) => beta.trim())
    .filter((beta) => beta !== "");
  const kept = asked.filter((beta) => betas.includes(beta));
  if (kept.length < asked.length) of.reportLoss("anthropic-beta", "dropped", "beta_not_allowed");
  if (kept.length > 0) out.set("anthropic_beta", kept);
  for (const name of ["anthropic-version", "anthropic-beta"]) out.setHeader(name);
}

/** All streams are, but for what says that it is not. */
const isFramed = (headers: HeadersIn): boolean =>
  !(headers["content-type"] ?? "").startsWith("text/event-stream");

function unframedPassthrough(inner: PassthroughStream): PassthroughStream {
  const decoder = createUnframingDecoder(inner);
  return {
    push: (chunk) => decoder.push(chunk),
    end: () => decoder.end(),
    writeFault: (fault) => inner.writeFault(fault),
    get isBetweenEvents() {
      return inner.isBetweenEvents;
    },
  };
}

/** The events in the frames, as the protocol's own stream has them. What one read brought goes on in one piece. */
function createUnframingDecoder(inner: Decoder): Decoder {
  let pieces: Buffer[] = [];
  const frames = createFrameReader((frame) => {
    nameIn(frame);
    const bytes = textOf(parsed(frame.payload)?.["bytes"]);
    if (bytes !== undefined) pieces.push(...toSseEvent(Buffer.from(bytes, "base64")));
  });
  const pass = () => {
    const read = pieces;
    pieces = [];
    if (read.length > 0) inner.push(Buffer.concat(read));
  };
  return {
    push(chunk) {
      try {
        frames.push(chunk);
      } finally {
        pass();
      }
    },
    end() {
      frames.end();
      inner.end();
    },
  };
}

const TYPE = /^\{"type":"([a-z_]{1,40})"/;
const LF = 10;
const CR = 13;

function toSseEvent(json: Buffer): Buffer[] {
  // Between its members JSON may have line ends, and nowhere else: in an event a space says the same.
  if (json.includes(LF) || json.includes(CR))
    for (let i = 0; i < json.length; i++) if (json[i] === LF || json[i] === CR) json[i] = 32;
  const type = TYPE.exec(json.toString("latin1", 0, 64))?.[1];
  const head = type === undefined ? "data: " : `event: ${type}\ndata: `;
  return [Buffer.from(head), json, Buffer.from("\n\n")];
}
