// The conversation of the Realtime playground, built from the events of its connection.
import type { RealtimeEvent } from "./realtime-connection.ts";

export interface Turn {
  /** ID of the item or the response. */
  readonly id: string;
  readonly speaker: "You" | "Model";
  readonly text: string;
  /** Usage that the provider reported for the response. */
  readonly usage?: unknown;
  readonly status?: string | undefined;
}

export interface Conversation {
  readonly turns: readonly Turn[];
  /** Errors that the provider or the gateway reported, newest last. */
  readonly errors: readonly string[];
  /** Types of the last events, newest last. */
  readonly log: readonly string[];
}

export const EMPTY: Conversation = { turns: [], errors: [], log: [] };

const MAX_LOGGED = 200;
const TEXT_DELTAS: ReadonlySet<string> = new Set([
  "response.output_text.delta",
  "response.text.delta",
  "response.output_audio_transcript.delta",
  "response.audio_transcript.delta",
]);

/** Adds an event. `direction`: "→" for an event that the page sent, "←" for one that it received. */
export function addEvent(
  of: Conversation,
  event: RealtimeEvent,
  direction: "→" | "←" = "←",
): Conversation {
  const log = [...of.log.slice(1 - MAX_LOGGED), `${direction} ${event.type}`];
  return { ...of, log, ...change(of, event) };
}

function change({ turns, errors }: Conversation, event: RealtimeEvent): Partial<Conversation> {
  const { type, response_id: response, item_id: item, delta, transcript } = event;
  if (type === "error")
    return { errors: [...errors, event["error"]?.message ?? JSON.stringify(event["error"])] };
  if (type === "conversation.item.create")
    return { turns: [...turns, { id: event["item"].id, speaker: "You", text: textOf(event) }] };
  if (type === "input_audio_buffer.committed")
    return { turns: [...turns, { id: item, speaker: "You", text: "(speech)" }] };
  if (type === "conversation.item.input_audio_transcription.completed")
    return { turns: update(turns, item, { text: transcript }) };
  if (type === "response.created")
    return { turns: [...turns, { id: event["response"].id, speaker: "Model", text: "" }] };
  if (TEXT_DELTAS.has(type)) {
    const text = turns.find(({ id }) => id === response)?.text ?? "";
    return { turns: update(turns, response, { text: text + delta }) };
  }
  if (type === "response.done") {
    const { id, usage, status } = event["response"];
    return { turns: update(turns, id, { usage, status }) };
  }
  return {};
}

const textOf = ({ item }: RealtimeEvent): string =>
  item.content.map(({ text = "" }: { text?: string }) => text).join("");

const update = (turns: readonly Turn[], id: string, to: Partial<Turn>): readonly Turn[] =>
  turns.map((turn) => (turn.id === id ? { ...turn, ...to } : turn));
