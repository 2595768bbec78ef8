// Google's Live API: a WebSocket with one JSON object per message, which both sides may also send as
// a binary message. Connections are relayed, so there are no codecs.
import { ERRORS, type ErrorKind } from "../../model/error.ts";
import { realtimeOperation } from "../../model/operations/realtime-operation.ts";
import type { Opt } from "../../model/values.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import type { SocketMessage } from "../../plugin/socket.ts";
import { fail } from "../../model/error.ts";
import { asObject, asText } from "../json-values.ts";
import { GeminiLiveMeter } from "./meter.ts";
import { member, readMessage } from "./message.ts";

export const geminiLive = (): Protocol<"realtime"> => ({
  id: "gemini-live",
  operationSpec: realtimeOperation,
  headers: { request: ["x-goog-api-client"] },
  socket: {
    createMeter: (sink, to) => new GeminiLiveMeter(sink, to),
    // The API has no message for errors. It closes the connection with a code and a reason.
    encodeFault: ({ kind }) => ({ close: closeCode(kind) }),
  },
});

/** Close code for a message that the API does not accept, as Google's own server uses it. */
const INVALID_MESSAGE = 1007;
const POLICY = 1008;
const INTERNAL = 1011;

const closeCode = (kind: ErrorKind): number => {
  const [status] = ERRORS[kind];
  if (status >= 500) return INTERNAL;
  return kind === "invalid" || kind === "too_large" ? INVALID_MESSAGE : POLICY;
};

/**
 * Returns the model that the first message of a client names, without the prefix `models/` and
 * without a project and a location.
 */
export function setupModel(first: Opt<SocketMessage>): string {
  const setup = first === undefined ? undefined : asObject(member(readMessage(first), "setup"));
  const name = asText(setup?.["model"]);
  if (!setup || name === undefined || name === "")
    return fail("invalid", 'The first message must be "setup" with a "model".', {
      code: "missing_setup",
      param: "setup.model",
    });
  return name
    .replace(/^projects\/[^/]+\/locations\/[^/]+\//, "")
    .replace(/^(?:publishers\/google\/)?models\//, "");
}
