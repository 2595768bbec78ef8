// What a provider's decoders are judged by: what its author has recorded, or, for a protocol that the kit's own upstream
// speaks, what that says. A decoder for which there is neither is not checked, and that is said.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Protocol } from "../../plugin/protocol.ts";
import type { Provider, WireEndpoint } from "../../plugin/provider.ts";
import type { ScriptedAnswer } from "../answer.ts";
import { recordings, type Recording } from "../recording.ts";
import { say, type SpokenProtocol } from "../speech.ts";
import { notChecked, type Subject } from "./subject.ts";
import { isWire } from "./work.ts";

/** An endpoint with the recordings that its decoder is judged by. */
export interface RecordedEndpoint {
  readonly endpoint: WireEndpoint;
  readonly protocol: Protocol;
  readonly recordings: readonly Recording[];
}

/** One for each protocol that a wire endpoint speaks. */
export function recorded({ endpoints }: Provider, subject: Subject): RecordedEndpoint[] {
  const first = new Map<string, WireEndpoint>();
  for (const endpoint of endpoints.filter(isWire))
    if (!first.has(endpoint.protocol.id)) first.set(endpoint.protocol.id, endpoint);
  return [...first].map(([id, endpoint]) => ({
    endpoint,
    protocol: endpoint.protocol,
    recordings: given(id, first.size, subject) ?? spoken(id) ?? none(id, subject),
  }));
}

/** `<folder>/<protocol>/…`, or of the only protocol `<folder>/…`. */
function given(id: string, protocols: number, { recordings: folder }: Subject) {
  if (folder === undefined || folder === false) return undefined;
  const own = join(folder, id);
  if (existsSync(own)) return recordings(own);
  return protocols === 1 ? recordings(folder) : undefined;
}

function none(id: string, { recordings: folder }: Subject): readonly Recording[] {
  if (folder === false) return [];
  throw new Error(notChecked(`The decoder of ${id}`, `recordings/${id}`));
}

const SPEECHES = {
  "said text": say("Hello, ").say("wörld ☕"),
  "said calls": say("One moment.")
    .call("look_up", { city: "Oslo" }, "call_1")
    .call("now", {}, "call_2"),
} as const;

/** What a client asks, in the fewest words, of the protocols that the kit speaks. */
const ASKED: { readonly [P in SpokenProtocol]: Recording["request"] } = {
  "chat-completions": { model: "model", messages: [{ role: "user", content: "Hello" }] },
  messages: { model: "model", max_tokens: 64, messages: [{ role: "user", content: "Hello" }] },
  responses: { model: "model", input: "Hello" },
};

function spoken(id: string): Recording[] | undefined {
  if (!Object.hasOwn(ASKED, id)) return undefined;
  const protocol = id as SpokenProtocol;
  return Object.entries(SPEECHES).flatMap(([name, speech]) =>
    [true, false].map((stream) => {
      const request = { ...ASKED[protocol], ...(stream && { stream }) };
      const body = {
        ...request,
        ...(protocol === "chat-completions" &&
          stream && { stream_options: { include_usage: true } }),
      };
      return asRecording(
        `${name}, ${stream ? "streamed" : "whole"}`,
        request,
        speech.in(protocol, { stream, body }),
      );
    }),
  );
}

function asRecording(
  name: string,
  request: Recording["request"],
  answer: ScriptedAnswer,
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
