// Where and how sessions are cut: every frame of every protocol, by each of the parties. A deck has
// each cut once, in random order.
import type { Cut } from "../../kit/sockets/socket-upstream.ts";
import type { Chance } from "../rig.ts";
import type { ProtocolName } from "./providers.ts";

const CUTTERS = [
  "client-close",
  "client-reset",
  "provider-close",
  "provider-reset",
  "provider-deaf",
  "revoke",
  "slow",
] as const;
export type Cutter = (typeof CUTTERS)[number] | "budget" | "none";

export interface Plan {
  readonly protocol: ProtocolName;
  readonly by: Cutter;
  /** The frame after which the connection is cut. For a budget: the part of the session's cost, in 10ths. */
  readonly at: number;
}

/** How a gateway ends: after the frame of a session that nobody else cuts. */
export interface Ending {
  readonly protocol: ProtocolName;
  readonly by: "kill" | "drain";
  readonly at: number;
}

/** Frames that a client receives in a whole session. The rig checks these numbers. */
export const FRAMES: Readonly<Record<ProtocolName, number>> = {
  realtime: 49,
  live: 13,
  responses: 36,
  pooled: 36,
};
/** Messages of the client after which a provider can cut. */
const ASKS = 3;
const BUDGETS = 15;
const PROTOCOLS = Object.keys(FRAMES) as ProtocolName[];

/** Which cuts and endings are played. Default: all. */
export interface PlanFilter {
  readonly by?: readonly Cutter[];
  readonly ending?: Ending["by"];
  readonly protocol?: ProtocolName;
}

export function allPlans({ by: cutters, protocol: only }: PlanFilter = {}): Plan[] {
  const plans = PROTOCOLS.flatMap((protocol) => {
    const plans = CUTTERS.flatMap((by) =>
      steps(by === "provider-deaf" ? ASKS : FRAMES[protocol]).map((at) => ({ protocol, by, at })),
    );
    const budgets = steps(BUDGETS).map((at) => ({ protocol, by: "budget" as const, at }));
    return [...plans, ...budgets];
  });
  return plans.filter(
    ({ by, protocol }) => (cutters?.includes(by) ?? true) && (only ?? protocol) === protocol,
  );
}

export const allEndings = ({ ending }: PlanFilter = {}): Ending[] =>
  PROTOCOLS.flatMap((protocol) =>
    (["kill", "drain"] as const)
      .filter((by) => (ending ?? by) === by)
      .flatMap((by) => steps(FRAMES[protocol]).map((at) => ({ protocol, by, at }))),
  );

const steps = (most: number): number[] => Array.from({ length: most }, (_, at) => at + 1);

/** Deals its cards in random order, and then again. */
export class Deck<T> {
  readonly #all: readonly T[];
  readonly #chance: Chance;
  #left: T[] = [];

  constructor(all: readonly T[], chance: Chance) {
    this.#all = all;
    this.#chance = chance;
  }

  deal(): T {
    if (this.#left.length === 0) this.#left = [...this.#all];
    return this.#left.splice(this.#chance.below(this.#left.length), 1)[0]!;
  }
}

/** The provider's part of a plan. */
export function providerCut({ by, at }: Plan): Cut | undefined {
  if (by === "provider-close") return { after: at, how: 1011 };
  if (by === "provider-reset") return { after: at, how: "reset" };
  if (by === "provider-deaf") return { after: at, how: "reset", of: "client" };
  return undefined;
}
