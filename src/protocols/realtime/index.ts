// OpenAI's Realtime API, which Azure and xAI also speak: a WebSocket with one JSON event per
// message. Connections are relayed, so there are no codecs.
import { realtimeOperation } from "../../model/operations/realtime-operation.ts";
import type { Fault } from "../../model/error.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import type { CallContext, Protocol } from "../../plugin/protocol.ts";
import type { SocketMessage } from "../../plugin/socket.ts";
import { clientMessage, openaiError } from "../failure/openai-error.ts";
import { asText, parseObject } from "../json-values.ts";
import { realtimeCalls } from "./calls.ts";
import { RealtimeMeter } from "./meter.ts";

export const realtime = (): Protocol<"realtime"> => ({
  id: "realtime",
  operationSpec: realtimeOperation,
  headers: { request: ["openai-beta", "openai-safety-identifier"] },
  socket: {
    createMeter: (sink, to) => new RealtimeMeter(sink, to),
    encodeFault: (fault, x) => ({ message: JSON.stringify(errorEvent(fault, x)) }),
    calls: realtimeCalls,
  },
});

export { CALL_PATHS } from "./calls.ts";

/**
 * Returns the path of the socket, with the model in its query. A session that only transcribes has
 * no model there: `session.update` names the one that transcribes.
 */
export const realtimePath = ({ model, query }: CallContext): string =>
  query.get("intent") === "transcription"
    ? "/realtime?intent=transcription"
    : `/realtime?model=${encodeURIComponent(model)}`;

/**
 * Encodes an error event. The top-level `event_id` is created by the gateway. The `event_id` of the
 * error is the ID of the client's event that caused it.
 */
function errorEvent(
  fault: Fault,
  { id, message }: { id: string; message?: Opt<SocketMessage> },
): JsonObject {
  const cause = typeof message === "string" ? parseObject(message) : undefined;
  return {
    type: "error",
    event_id: `event_${id}`,
    error: {
      ...openaiError({ ...fault, message: clientMessage(fault, id) }),
      event_id: asText(cause?.["event_id"]) ?? null,
    },
  };
}
