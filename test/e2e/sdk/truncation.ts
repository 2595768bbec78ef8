// Responses that an upstream truncates at a byte and in a way, and their results in the official
// SDKs behind the gateway: for the test of every such byte, and for the rig with random ones.
import {
  protocolAtPath,
  type Truncation,
  type ResponsePiece,
  type ScriptedResponse,
  type ScriptProtocol,
  type UpstreamRequest,
} from "tollgate/testing";
import { ALL, SPEECH, type Client, type Heard } from "./clients.ts";
import { freshOn, type GatewayWithUpstream } from "./gateway-with-upstream.ts";

/** More models than truncations of one protocol, because a cooldown would affect repeated ones. */
export const MODELS = 12_000;
/** One failure is returned to its client, and nothing is retried. */
export const ONCE = "retries: { per_target: 1, total: 1 }\n";

const bytesOf = (piece: ResponsePiece): Buffer =>
  Buffer.from(typeof piece === "object" && "tells" in piece ? piece.bytes : (piece as string));
export const pieces = ({ body }: ScriptedResponse) =>
  ([body].flat() as ResponsePiece[]).map(bytesOf);

/** Point after which a response is complete except for optional parts: after the finish event. */
const ENDS: { readonly [spoken in ScriptProtocol]: RegExp } = {
  "chat-completions": /"finish_reason":"/,
  messages: /"stop_reason":"/,
  responses: /^event: response\.completed/,
};
export const finishIn = (parts: readonly Buffer[], spoken: ScriptProtocol): number =>
  parts.findIndex((part) => ENDS[spoken].test(String(part)));
export function finishAt(parts: readonly Buffer[], spoken: ScriptProtocol): number {
  return parts.slice(0, finishIn(parts, spoken) + 1).reduce((sum, part) => sum + part.length, 0);
}

/**
 * In passthrough mode every byte, and every seventh for events that repeat everything. Otherwise
 * around each event's start and end, and some in between.
 */
export function places(parts: readonly Buffer[], every: boolean): number[] {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (every) {
    let from = 0;
    return parts.flatMap((part) => {
      const stride = part.length > 600 ? 7 : 1;
      const begin = from;
      from += part.length;
      return Array.from({ length: Math.ceil(part.length / stride) }, (_, i) => begin + i * stride);
    });
  }
  const found = new Set<number>();
  let edge = 0;
  for (const part of parts) {
    for (const near of [-2, -1, 0, 1, 7])
      if (edge + near >= 0 && edge + near < length) found.add(edge + near);
    edge += part.length;
  }
  for (let at = 0; at < length; at += 61) found.add(at);
  return [...found].toSorted((a, b) => a - b);
}

export type CutResult = { readonly heard: Heard } | { readonly raised: true };

/**
 * One request after another in each of a few lanes, because the machine is small and a port is not
 * reused immediately.
 */
export async function askedCut(
  at: GatewayWithUpstream,
  cuts: readonly Truncation[],
  ask: Client,
  spoken: ScriptProtocol,
  stream: boolean,
): Promise<CutResult[]> {
  const results: CutResult[] = [];
  let next = 0;
  // The prompt identifies the truncation of a request.
  const lane = async () => {
    while (next < cuts.length) {
      const mine = next++;
      results[mine] = await ask(freshOn(spoken, MODELS), `cut ${mine}.`).then(
        (heard) => ({ heard }),
        () => ({ raised: true }),
      );
    }
  };
  const reply = (asked: UpstreamRequest): ScriptedResponse => {
    const cut = cuts[Number(/cut (\d+)\./.exec(String(asked.body))?.[1])];
    return {
      ...SPEECH.toProtocol(spoken, { stream, model: "model" }),
      ...(cut && { truncation: cut }),
    };
  };
  for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
    at.up.setRoutes({ [`POST ${path}`]: reply });
  at.up.reset();
  await Promise.all(Array.from({ length: 8 }, lane));
  if (at.asked().length !== cuts.length)
    throw new Error(`${cuts.length} were asked, and upstream was asked ${at.asked().length} times`);
  for (const { path } of at.asked())
    if (protocolAtPath(path) !== spoken) throw new Error(`${path} is not ${spoken}`);
  return results;
}

/**
 * Violations: before its finish a client must raise, and after it the response must be complete.
 */
export function flaw(result: CutResult, after: number, finish: number): string | undefined {
  if ("raised" in result) return undefined;
  if (after < finish - 2) return "it did not raise";
  const { heard } = result;
  return heard.all === ALL && heard.ended ? undefined : `it read ${JSON.stringify(heard)}`;
}
