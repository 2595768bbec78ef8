// What may be tried again after a failure: data, beside ERRORS. There the kind decides whether another candidate may be asked; here
// it is how far the call had come that decides, together with the kind, whether the same target may be asked once more, and what
// the call's row in the ledger is.
import type { ErrorKind } from "./error.ts";

/**
 * fresh: at once, before any other candidate: the connection was at fault, not the target. later: after the others, and after a pause
 * that chance spreads. told: after the others, and after the pause that the provider asked for, where that is short. All of them
 * on a new connection, for which the name is looked up again.
 */
export type Again = "fresh" | "later" | "told";

interface Stage {
  /** What it means, in the words of the docs. */
  readonly about: string;
  /** Whether another candidate may be asked, where ERRORS and the route's `on:` allow it. */
  readonly next: boolean;
  /** After which kinds the same target may be asked once more. */
  readonly again: { readonly [K in ErrorKind]?: Again };
  /** Whether that costs nothing of the target's budget of retries. */
  readonly free: boolean;
  /**
   * void: nothing is billed. presumed: its input is billed as if it had been read, with what was seen of an answer. partial: what was
   * made is billed.
   */
  readonly row: "void" | "presumed" | "partial";
}

/** How far a call had come when it failed, from nothing sent to something that its client has seen. */
export const STAGES = {
  unsent: {
    about: "nothing was sent: no address, no connection, no TLS",
    next: true,
    again: { upstream: "later", timeout: "later" },
    free: false,
    row: "void",
  },
  cut: {
    about: "the connection was closed before all of the request was sent",
    next: true,
    again: { upstream: "fresh" },
    free: true,
    row: "void",
  },
  unanswered: {
    about: "all was sent, and nothing came back",
    next: true,
    again: { upstream: "fresh" },
    free: false,
    row: "presumed",
  },
  refused: {
    about: "the provider refused it",
    next: true,
    again: { upstream: "later", overloaded: "later", timeout: "later", rate_limited: "told" },
    free: false,
    row: "void",
  },
  begun: {
    about: "an answer began and failed before its first content",
    next: true,
    again: { upstream: "later", overloaded: "later" },
    free: false,
    row: "presumed",
  },
  content: {
    about: "content has left for the client",
    next: false,
    again: {},
    free: false,
    row: "partial",
  },
} as const satisfies Record<string, Stage>;

/** How far a call had come. */
export type CallStage = keyof typeof STAGES;

/** How the same target may be tried once more; undefined: it may not. */
export const againAfter = (stage: CallStage, kind: ErrorKind): Again | undefined =>
  (STAGES[stage] as Stage).again[kind];
