// What a provider's decoders are judged by: what its author has recorded, or, for a protocol that the kit's own upstream
// speaks, what that says. A decoder for which there is neither is not checked, and that is said.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Protocol } from "../../plugin/protocol.ts";
import type { Provider, ProtocolEndpoint } from "../../plugin/provider.ts";
import type { ScriptedResponse } from "../upstream/scripted-response.ts";
import { readRecordings, type Recording } from "../recording.ts";
import { say, type ScriptProtocol } from "../upstream/model-script.ts";
import { notCheckedMessage, type ConformanceSubject } from "./subject.ts";
import { isProtocolEndpoint } from "./operation.ts";

/** An endpoint with the recordings that its decoder is judged by. */
export interface RecordedEndpoint {
  readonly endpoint: ProtocolEndpoint;
  readonly protocol: Protocol;
  readonly recordings: readonly Recording[];
}

/** One for each protocol that a wire endpoint speaks. */
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

/** `<folder>/<protocol>/…`, or of the only protocol `<folder>/…`. */
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

/** What a client asks, in the fewest words, of the protocols that the kit speaks. */
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
