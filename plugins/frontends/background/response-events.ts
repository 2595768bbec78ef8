// The events of a response as its log contains them: numbered without gaps, with the gateway's ID.
import type { JsonObject } from "tollgate/plugin";
import type { ResponseState } from "./response-record.ts";

/** An event: its type, a tab, and its JSON text. */
export type EventLine = string;

/** States in which the last event of a response leaves it. */
const LAST_EVENTS: Readonly<Record<string, ResponseState>> = {
  "response.completed": "completed",
  "response.incomplete": "incomplete",
  "response.failed": "failed",
  error: "failed",
};

export interface NumberedEvent {
  readonly line: EventLine;
  /** The state of the response after this event, if it is the last one. */
  readonly endsAs: ResponseState | undefined;
  /** ID of the response before it was replaced. */
  readonly upstreamId: string | undefined;
}

/** Numbers an event of the model's response. Throws if it is not JSON. */
export function numberEvent(data: string, id: string, sequence: number): NumberedEvent {
  const event = JSON.parse(data) as JsonObject;
  const type = String(event["type"]);
  const response = event["response"] as JsonObject | null | undefined;
  const own = response ? { ...response, id, background: true } : undefined;
  const numbered = { ...event, ...(own && { response: own }), sequence_number: sequence };
  const upstreamId = response?.["id"];
  return {
    line: encodeLine(type, numbered),
    endsAs: Object.hasOwn(LAST_EVENTS, type) ? LAST_EVENTS[type] : undefined,
    upstreamId: typeof upstreamId === "string" ? upstreamId : undefined,
  };
}

/** An event type that could end a line is not one of the API. */
const encodeLine = (type: string, event: JsonObject): EventLine =>
  `${type.replace(/[\t\r\n]/g, " ")}\t${JSON.stringify(event)}`;

/** Creates the last event of a response that failed without one. */
export const failedLine = (response: JsonObject, sequence: number): EventLine =>
  encodeLine("response.failed", {
    type: "response.failed",
    sequence_number: sequence,
    response,
  });

/** Returns an event in the format of a stream. */
export function encodeLineForClient(line: EventLine): string {
  const tab = line.indexOf("\t");
  return `event: ${line.slice(0, tab)}\ndata: ${line.slice(tab + 1)}\n\n`;
}

/** Returns the response that the last event contains. */
export function responseOf(line: EventLine, base: JsonObject): JsonObject {
  const event = JSON.parse(line.slice(line.indexOf("\t") + 1)) as JsonObject;
  const response = event["response"];
  if (typeof response === "object" && response !== null) return response as JsonObject;
  // An event of the type `error` has the members of the error itself.
  return failedResponse(base, String(event["message"] ?? "The response failed."));
}

/** Code of the error in a response, as the API defines it. */
const FAILURE = "server_error";

/** Returns a response that failed. */
export const failedResponse = (base: JsonObject, message: string): JsonObject => ({
  ...base,
  status: "failed",
  error: { code: FAILURE, message },
});
