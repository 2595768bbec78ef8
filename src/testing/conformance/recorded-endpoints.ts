// Finds the recordings that a provider's decoders are checked with: those of the author, or the
// responses of the fake upstream if it supports the protocol. A decoder without either is reported
// as not checked.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Protocol } from "../../plugin/protocol.ts";
import type { Provider, ProtocolEndpoint } from "../../plugin/provider.ts";
import type { ScriptedResponse } from "../upstream/scripted-response.ts";
import { readRecordings, type Recording } from "../recording.ts";
import { say, type ScriptProtocol } from "../upstream/model-script.ts";
import { notCheckedMessage, type ConformanceSubject } from "./subject.ts";
import { isProtocolEndpoint } from "./operation.ts";

/** An endpoint with the recordings for its decoder. */
export interface RecordedEndpoint {
  readonly endpoint: ProtocolEndpoint;
  readonly protocol: Protocol;
  readonly recordings: readonly Recording[];
}

/** Returns one endpoint for each protocol of the provider's protocol endpoints. */
export function recordedEndpoints(
  { endpoints }: Provider,
  subject: ConformanceSubject,
): RecordedEndpoint[] {
  const first = new Map<string, ProtocolEndpoint>();
  for (const endpoint of endpoints.filter(isProtocolEndpoint))
    if (!first.has(endpoint.protocol.id)) first.set(endpoint.protocol.id, endpoint);
  return [...first].map(([id, endpoint]) => ({
    endpoint,
    protocol: endpoint.protocol,
    recordings:
      findRecordings(id, first.size, subject) ??
      scriptedRecordings(id) ??
      failWithoutRecordings(id, subject),
  }));
}

/**
 * Recordings are in `<folder>/<protocol>/…`, or in `<folder>/…` if the provider has one protocol.
 */
function findRecordings(id: string, protocols: number, { recordings: folder }: ConformanceSubject) {
  if (folder === undefined || folder === false) return undefined;
  const own = join(folder, id);
  if (existsSync(own)) return readRecordings(own);
  return protocols === 1 ? readRecordings(folder) : undefined;
}

function failWithoutRecordings(
  id: string,
  { recordings: folder }: ConformanceSubject,
): readonly Recording[] {
  if (folder === false) return [];
  throw new Error(notCheckedMessage(`The decoder of ${id}`, `recordings/${id}`));
}

const SCRIPTS = {
  "said text": say("Hello, ").say("wörld ☕"),
  "said calls": say("One moment.")
    .call("look_up", { city: "Oslo" }, "call_1")
    .call("now", {}, "call_2"),
} as const;

/** Minimal client requests for the protocols that the fake upstream supports. */
const SAMPLE_REQUESTS: { readonly [P in ScriptProtocol]: Recording["request"] } = {
  "chat-completions": { model: "model", messages: [{ role: "user", content: "Hello" }] },
  messages: { model: "model", max_tokens: 64, messages: [{ role: "user", content: "Hello" }] },
  responses: { model: "model", input: "Hello" },
};

function scriptedRecordings(id: string): Recording[] | undefined {
  if (!Object.hasOwn(SAMPLE_REQUESTS, id)) return undefined;
  const protocol = id as ScriptProtocol;
  return Object.entries(SCRIPTS).flatMap(([name, speech]) =>
    [true, false].map((stream) => {
      const request = { ...SAMPLE_REQUESTS[protocol], ...(stream && { stream }) };
      const body = {
        ...request,
        ...(protocol === "chat-completions" &&
          stream && { stream_options: { include_usage: true } }),
      };
      return toRecording(
        `${name}, ${stream ? "streamed" : "whole"}`,
        request,
        speech.toProtocol(protocol, { stream, body }),
      );
    }),
  );
}

function toRecording(
  name: string,
  request: Recording["request"],
  answer: ScriptedResponse,
): Recording {
  const pieces = [answer.body ?? []].flat().map((piece) => {
    const bytes = typeof piece === "object" && "tells" in piece ? piece.bytes : piece;
    return Buffer.from(bytes as Buffer);
  });
  const headers = Object.entries(answer.headers ?? {}).map(([key, value]) => [key, String(value)]);
  return {
    name,
    request,
    status: answer.status ?? 200,
    headers: Object.fromEntries(headers),
    body: Buffer.concat(pieces),
    events: undefined,
  };
}
