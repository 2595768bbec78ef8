// The states of one call's response, from the provider's first byte to the client's last. Before
// the finish event, a failure rejects the call, so that another candidate may answer or the client
// receives an error. After it, the response is complete when three things have happened, in any
// order: the ledger row is durable, the client's end is written, and the provider's message has
// ended. The states after the finish are named after what they still wait for.

/**
 * Event of a response.
 *
 * - `finish`: the finish event arrived, and the ledger row is being written
 * - `row`: the row is durable, or the client has waited for it long enough
 * - `end`: everything for the client is written
 * - `upstream`: the provider's message has ended
 * - `give_up`: an error after the finish event; only the row is still awaited
 * - `fail`: an error before the finish event
 */
export type ResponseEvent = "finish" | "row" | "end" | "upstream" | "give_up" | "fail";

type Transitions = { readonly [E in ResponseEvent]?: StateName };

const TRANSITIONS = {
  streaming: { finish: "row+end+upstream", upstream: "held", fail: "failed" },
  /** The provider's message has ended, but a hook or an image delays the finish event. */
  held: { finish: "row+end", upstream: "held", fail: "failed" },
  "row+end+upstream": {
    row: "end+upstream",
    end: "row+upstream",
    upstream: "row+end",
    give_up: "row",
  },
  "row+end": { row: "end", end: "row", upstream: "row+end", give_up: "row" },
  "row+upstream": { row: "upstream", end: "row+upstream", upstream: "row", give_up: "row" },
  "end+upstream": { end: "upstream", upstream: "end", give_up: "complete" },
  row: { row: "complete", end: "row", upstream: "row", give_up: "row" },
  end: { end: "complete", upstream: "end", give_up: "complete" },
  upstream: { end: "upstream", upstream: "complete", give_up: "complete" },
  complete: {},
  failed: {},
} as const satisfies { readonly [name: string]: { readonly [E in ResponseEvent]?: string } };

export type StateName = keyof typeof TRANSITIONS;

/** One state. All responses share the same objects, so reading one is not a cache miss. */
export class ResponseState {
  readonly name: StateName;
  /** Whether nothing that happens to the response matters any more. */
  readonly isOver: boolean;
  /** Whether the finish event has arrived and the response has not ended. */
  readonly isFinishing: boolean;
  readonly awaitsRow: boolean;
  /** Whether the end of the client's bytes is still to be written. */
  readonly awaitsEnd: boolean;
  /** Whether more of the provider's message may come. */
  readonly awaitsUpstream: boolean;

  constructor(name: StateName) {
    const parts = name.split("+");
    this.name = name;
    this.isOver = name === "complete" || name === "failed";
    this.isFinishing = !this.isOver && name !== "streaming" && name !== "held";
    this.awaitsRow = parts.includes("row");
    this.awaitsEnd = parts.includes("end") || name === "streaming" || name === "held";
    this.awaitsUpstream = parts.includes("upstream") || name === "streaming";
  }

  /** Returns the state after the event. Throws if the event is impossible in this state. */
  after(event: ResponseEvent): ResponseState {
    const transitions: Transitions = TRANSITIONS[this.name];
    const next = transitions[event];
    if (next === undefined)
      throw new Error(`Impossible event of a response: ${event} in the state ${this.name}.`);
    return STATES[next];
  }
}
const STATES = Object.fromEntries(
  Object.keys(TRANSITIONS).map((name) => [name, new ResponseState(name as StateName)]),
) as { readonly [N in StateName]: ResponseState };

/** The state in which every response starts. */
export const STREAMING = STATES.streaming;
