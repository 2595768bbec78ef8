// Claude through InvokeModel, in the messages protocol with three differences. `model` and `stream`
// are in the URL, the version is in the body, and events are in binary frames. The protocol ID is
// the ID of the messages protocol, so the bytes of a messages client are forwarded unchanged.
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
import { claude, filterBetas, messages, requestedBetas } from "tollgate/protocols/messages";
import { nameIn } from "./converse/reader.ts";
import { createFrameReader } from "./event-stream.ts";
import { parsed, textOf } from "./json.ts";
import { modelPath } from "./invoke-model.ts";
import { parseAwsError } from "./errors.ts";

/** The first API version of Bedrock. If a client requests a newer date, that version is used. */
const VERSION = "bedrock-2023-05-31";
/** Anthropic's first API version, which clients sent for years. Bedrock has another name for it. */
const FIRST_ANTHROPIC_VERSION = "2023-06-01";

const REVIEWED: FieldAllowlist = [
  ["its version, and what it may try", valueFields("anthropic_version anthropic_beta")],
];

/** Returns Anthropic's name of a model. Profiles, ARNs, and model IDs contain it. */
export const bareName = (model: string): string =>
  /(?:^|[./])anthropic\.(claude[^/]*)$/.exec(model)?.[1] ?? model;

export const isClaude = (model: string): boolean => bareName(model) !== model;

/**
 * Creates the protocol. `betas`: the client-requested beta features that are forwarded to Bedrock.
 */
export function bedrockClaude(betas: readonly string[]): Protocol<"chat"> {
  const own = messages({ ...claude, countsTokens: false });
  const client = own.client as ClientHalf<"chat">;
  return {
    ...own,
    headers: { ...own.headers, request: ["anthropic-version", "anthropic-beta"] },
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

/** Returns the same call with the model's Anthropic name, for which its capabilities are known. */
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

/** Moves values that other providers receive as headers into the body. */
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
  const requested = requestedBetas(out).length;
  const kept = filterBetas(out, of, (beta) => betas.includes(beta), PARTS_WITHOUT_BETA);
  if (kept.length < requested) of.reportLoss("anthropic-beta", "dropped", "beta_not_allowed");
  if (kept.length > 0) out.set("anthropic_beta", kept);
  for (const name of ["anthropic-version", "anthropic-beta"]) out.setHeader(name);
}

/** Bedrock accepts a lifetime of cache marks without a beta. */
const PARTS_WITHOUT_BETA = ["cache_control.ttl"];

/** Streams are framed unless their content type has another value. */
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

/**
 * Extracts the events from the frames as a server-sent event stream. All events of one read are
 * passed on together.
 */
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
  // JSON contains line ends only between its members. A server-sent event cannot contain them, so
  // they are replaced by spaces, which have the same meaning.
  if (json.includes(LF) || json.includes(CR))
    for (let i = 0; i < json.length; i++) if (json[i] === LF || json[i] === CR) json[i] = 32;
  const type = TYPE.exec(json.toString("latin1", 0, 64))?.[1];
  const head = type === undefined ? "data: " : `event: ${type}\ndata: `;
  return [Buffer.from(head), json, Buffer.from("\n\n")];
}
