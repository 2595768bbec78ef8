// The gateways that share a store, as an operator wants to see them: which live, what each runs, whose clock or knowledge is off. A store
// of one process is a fleet of one.
import { availableParallelism, hostname, networkInterfaces } from "node:os";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { InstanceInfo, InstanceState } from "../../plugin/store/store-instance.ts";
import type { FleetStats } from "../../plugin/gateway-stats.ts";
import type { Store } from "../../plugin/store/store.ts";
import { readInstances } from "./store-instances.ts";

export interface FleetNode extends InstanceState {
  /** The one that was asked. */
  readonly isSelf: boolean;
}

export interface Fleet {
  /** Gateways, those that live first. */
  readonly nodes: readonly FleetNode[];
  /** Programs of the command line that have the store open now. */
  readonly commandPrograms: readonly FleetNode[];
  /** What an operator should look at, in words; none: all is well. */
  readonly warnings: readonly string[];
}

/** By a clock that is further off, calls stand in the wrong day, and a window may be another one. */
const MAX_CLOCK_SKEW_MS = 2_000;
/** What a key's change may take to be known everywhere. */
const MAX_SYNC_LAG_MS = 1_500;

/** Of a generation that answers: its number, and the hash of its config. */
interface AnsweringGeneration {
  readonly built: { readonly gen: { readonly number: number } };
  readonly config: {
    readonly hash: string;
    readonly listen: readonly { readonly host: string }[];
    readonly workers: number | "auto";
  };
}

/** What the store and other gateways know of this one. Until it answers clients (no `url`) there is little to say. */
export function instanceInfoOf(
  version: string,
  url: string,
  live: AnsweringGeneration | undefined,
): InstanceInfo {
  const facts: InstanceInfo = { version, host: hostname(), pid: process.pid, program: "gateway" };
  return url === "" || !live
    ? facts
    : {
        ...facts,
        url,
        ...reachableAddress(url, live.config.listen[0]?.host),
        generation: live.built.gen.number,
        config: live.config.hash,
        workers: live.config.workers === "auto" ? availableParallelism() : live.config.workers,
      };
}

/** At any address of this machine: by one that others see. A unix socket is seen by none. */
function reachableAddress(url: string, host: string | undefined): Pick<InstanceInfo, "address"> {
  if (!URL.canParse(url) || !/^https?:/.test(url)) return {};
  const at = new URL(url);
  if (host === "0.0.0.0" || host === "::") {
    const all = Object.values(networkInterfaces()).flatMap((some) => some ?? []);
    const address = all.find(({ internal, family }) => !internal && family === "IPv4");
    if (address) at.hostname = address.address;
  }
  return { address: at.origin };
}

/** A store that does not answer in time is told of in a remark, and this gateway is all that is known. */
export async function readFleet(
  { store, instanceId = "" }: { store: Pick<Store, "listInstances">; instanceId?: string },
  self: InstanceInfo,
): Promise<Fleet> {
  const found = await readInstances(store);
  const alone: InstanceState = {
    instance: instanceId,
    info: self,
    state: "live",
    lastHeartbeatAt: wallClock(),
  };
  const all = (found ?? [alone])
    .map((each) => ({ ...each, isSelf: each.instance === instanceId }))
    .sort((a, b) => rankOf(a) - rankOf(b) || b.lastHeartbeatAt - a.lastHeartbeatAt);
  const nodes = all.filter((each) => !isCommandProgram(each));
  const silent = store.listInstances && !found;
  return {
    nodes,
    commandPrograms: all.filter((each) => isCommandProgram(each) && each.state === "live"),
    warnings: [
      ...(silent ? ["the store does not answer, so other gateways are not listed"] : []),
      ...fleetWarnings(nodes, all),
    ],
  };
}

/** A program of the command line serves no client, and ends by itself. */
const isCommandProgram = ({ info }: InstanceState): boolean => info?.program === "command";

/** For readings. Undefined: the store belongs to one process, or does not answer in time. */
export async function readFleetStats({
  store,
  instanceId,
}: {
  store: Pick<Store, "listInstances">;
  instanceId?: string;
}): Promise<FleetStats | undefined> {
  const all = await readInstances(store);
  const own = all?.find((each) => each.instance === instanceId);
  const count = (of: InstanceState["state"]) =>
    all?.filter((each) => each.state === of && !isCommandProgram(each)).length ?? 0;
  return (
    all && {
      live: count("live"),
      left: count("left"),
      dead: count("dead"),
      clockAheadMs: own?.clockAheadMs,
      syncLagMs: own?.syncLagMs,
    }
  );
}

const rankOf = ({ state }: InstanceState): number => ["live", "dead", "left"].indexOf(state);

function fleetWarnings(nodes: readonly FleetNode[], all: readonly FleetNode[]): string[] {
  const live = nodes.filter(({ state }) => state === "live");
  const differ = (what: string, of: (about: InstanceInfo) => string | undefined): string[] => {
    const kinds = new Set(live.flatMap(({ info }) => (info && of(info)) || []));
    return kinds.size > 1 ? [`${kinds.size} ${what} run side by side`] : [];
  };
  return [
    ...differ("versions", ({ version }) => version),
    ...differ("configs", ({ config }) => config),
    ...live.flatMap(({ instance, clockAheadMs = 0, syncLagMs = 0 }) => [
      ...(Math.abs(clockAheadMs) > MAX_CLOCK_SKEW_MS
        ? [
            `the clock of ${instance} is ${Math.abs(clockAheadMs)} ms ${clockAheadMs > 0 ? "ahead" : "behind"}`,
          ]
        : []),
      ...(syncLagMs > MAX_SYNC_LAG_MS
        ? [`${instance} has not known the last change of keys or accounts for ${syncLagMs} ms`]
        : []),
    ]),
    ...all.flatMap(({ instance, state, openCalls = 0 }) =>
      state !== "live" && openCalls > 0
        ? [`${openCalls} calls of ${instance}, which is ${state}, are open`]
        : [],
    ),
  ];
}
