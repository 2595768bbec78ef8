// The gateways that share a store, as an operator wants to see them: which live, what each runs, whose clock or knowledge is off. A store
// of one process is a fleet of one.
import { availableParallelism, hostname, networkInterfaces } from "node:os";
import { wallClock } from "../../lib/wall-clock.ts";
import type { InstanceFacts, InstanceState } from "../../plugin/instance.ts";
import type { FleetReading } from "../../plugin/readings.ts";
import type { Store } from "../../plugin/store.ts";
import { instancesOf } from "./instances.ts";

export interface FleetNode extends InstanceState {
  /** The one that was asked. */
  readonly self: boolean;
}

export interface Fleet {
  /** Gateways, those that live first. */
  readonly nodes: readonly FleetNode[];
  /** Programs of the command line that have the store open now. */
  readonly commands: readonly FleetNode[];
  /** What an operator should look at, in words; none: all is well. */
  readonly remarks: readonly string[];
}

/** By a clock that is further off, calls stand in the wrong day, and a window may be another one. */
const SKEW_MS = 2_000;
/** What a key's change may take to be known everywhere. */
const LAG_MS = 1_500;

/** Of a generation that answers: its number, and the hash of its config. */
interface Answering {
  readonly built: { readonly gen: { readonly number: number } };
  readonly config: {
    readonly hash: string;
    readonly listen: readonly { readonly host: string }[];
    readonly workers: number | "auto";
  };
}

/** What the store and other gateways know of this one. Until it answers clients (no `url`) there is little to say. */
export function factsOf(version: string, url: string, live: Answering | undefined): InstanceFacts {
  const facts: InstanceFacts = { version, host: hostname(), pid: process.pid, program: "gateway" };
  return url === "" || !live
    ? facts
    : {
        ...facts,
        url,
        ...reached(url, live.config.listen[0]?.host),
        generation: live.built.gen.number,
        config: live.config.hash,
        workers: live.config.workers === "auto" ? availableParallelism() : live.config.workers,
      };
}

/** At any address of this machine: by one that others see. A unix socket is seen by none. */
function reached(url: string, host: string | undefined): Pick<InstanceFacts, "address"> {
  if (!URL.canParse(url) || !/^https?:/.test(url)) return {};
  const at = new URL(url);
  if (host === "0.0.0.0" || host === "::") {
    const all = Object.values(networkInterfaces()).flatMap((some) => some ?? []);
    const seen = all.find(({ internal, family }) => !internal && family === "IPv4");
    if (seen) at.hostname = seen.address;
  }
  return { address: at.origin };
}

/** A store that does not answer in time is told of in a remark, and this gateway is all that is known. */
export async function fleetOf(
  { store, instance = "" }: { store: Pick<Store, "instances">; instance?: string },
  about: InstanceFacts,
): Promise<Fleet> {
  const found = await instancesOf(store);
  const alone: InstanceState = { instance, about, state: "live", heard: wallClock() };
  const all = (found ?? [alone])
    .map((each) => ({ ...each, self: each.instance === instance }))
    .sort((a, b) => rank(a) - rank(b) || b.heard - a.heard);
  const nodes = all.filter((each) => !isCommand(each));
  const silent = store.instances && !found;
  return {
    nodes,
    commands: all.filter((each) => isCommand(each) && each.state === "live"),
    remarks: [
      ...(silent ? ["the store does not answer, so other gateways are not listed"] : []),
      ...remarksOf(nodes, all),
    ],
  };
}

/** A program of the command line serves no client, and ends by itself. */
const isCommand = ({ about }: InstanceState): boolean => about?.program === "command";

/** For readings. Undefined: the store belongs to one process, or does not answer in time. */
export async function fleetReading({
  store,
  instance,
}: {
  store: Pick<Store, "instances">;
  instance?: string;
}): Promise<FleetReading | undefined> {
  const all = await instancesOf(store);
  const own = all?.find((each) => each.instance === instance);
  const count = (of: InstanceState["state"]) =>
    all?.filter((each) => each.state === of && !isCommand(each)).length ?? 0;
  return (
    all && {
      live: count("live"),
      left: count("left"),
      dead: count("dead"),
      aheadMs: own?.aheadMs,
      lagMs: own?.lagMs,
    }
  );
}

const rank = ({ state }: InstanceState): number => ["live", "dead", "left"].indexOf(state);

function remarksOf(nodes: readonly FleetNode[], all: readonly FleetNode[]): string[] {
  const live = nodes.filter(({ state }) => state === "live");
  const differ = (what: string, of: (about: InstanceFacts) => string | undefined): string[] => {
    const kinds = new Set(live.flatMap(({ about }) => (about && of(about)) || []));
    return kinds.size > 1 ? [`${kinds.size} ${what} run side by side`] : [];
  };
  return [
    ...differ("versions", ({ version }) => version),
    ...differ("configs", ({ config }) => config),
    ...live.flatMap(({ instance, aheadMs = 0, lagMs = 0 }) => [
      ...(Math.abs(aheadMs) > SKEW_MS
        ? [
            `the clock of ${instance} is ${Math.abs(aheadMs)} ms ${aheadMs > 0 ? "ahead" : "behind"}`,
          ]
        : []),
      ...(lagMs > LAG_MS
        ? [`${instance} has not known the last change of keys or accounts for ${lagMs} ms`]
        : []),
    ]),
    ...all.flatMap(({ instance, state, open = 0 }) =>
      state !== "live" && open > 0
        ? [`${open} calls of ${instance}, which is ${state}, are open`]
        : [],
    ),
  ];
}
