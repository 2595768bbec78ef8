// Whether the gateway can take requests: one state for all processes of a gateway. The process that owns the store decides it and
// sends every change to the others, so that `/readyz`, `status`, the console, and metrics agree.
import type { HealthName } from "../../plugin/readings.ts";
import type { LedgerQueue } from "./ledger.ts";

/** Why the ledger accepts no rows, and since when (Unix milliseconds). */
export interface LedgerTrouble {
  readonly why: string;
  readonly since: number;
  /** The store has reported that it cannot be reached. */
  readonly away: boolean;
}

type Heard = (trouble: LedgerTrouble | undefined) => void;

export class Health {
  readonly #heard = new Set<Heard>();
  #trouble: LedgerTrouble | undefined;

  get trouble(): LedgerTrouble | undefined {
    return this.#trouble;
  }

  /** Called by the process that owns the store, and by the others with what that one has sent. */
  set(trouble: LedgerTrouble | undefined): void {
    this.#trouble = trouble;
    for (const heard of this.#heard) heard(trouble);
  }

  onChange(heard: Heard): void {
    this.#heard.add(heard);
  }
}

/** The name of the state. A gateway that drains says so whatever its ledger does: no request should be sent to it. */
export function healthName(of: {
  readonly draining: boolean;
  readonly open: boolean;
  readonly trouble: LedgerTrouble | undefined;
}): HealthName {
  if (of.draining) return "draining";
  if (!of.open) return "starting";
  return of.trouble ? "ledger_down" : "ready";
}

/** Applies a state that the owner of the store has sent, in a process that only borrows it. */
export function followHealth(
  { health, ledger }: { readonly health: Health; readonly ledger: LedgerQueue },
  trouble: LedgerTrouble | undefined,
): void {
  health.set(trouble);
  if (trouble?.away) ledger.away(trouble.why);
  else if (!trouble) ledger.probe();
}
