// Describes for operators the gateways that share a store: the live gateways, their versions and
// configs, and clocks or data that are out of date. A store that only one process uses is a fleet
// of one gateway.
import { availableParallelism, hostname, networkInterfaces } from "node:os";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { InstanceInfo, InstanceState } from "../../plugin/store/store-instance.ts";
import type { FleetStats } from "../../plugin/gateway-stats.ts";
import type { Store } from "../../plugin/store/store.ts";
import { withTimeout } from "../ledger/queued-command.ts";

export interface FleetNode extends InstanceState {
  /** Whether this is the gateway that was queried. */
  readonly isSelf: boolean;
}

export interface Fleet {
  /** Gateways, with live gateways first. */
  readonly nodes: readonly FleetNode[];
  /** Command-line programs that have the store open now. */
  readonly commandPrograms: readonly FleetNode[];
  /** Messages for the operator. Empty if everything is in order. */
  readonly warnings: readonly string[];
}

/**
 * Maximum clock difference before a warning, in milliseconds. If the difference is larger, calls
 * are counted on the wrong day or in the wrong window.
 */
const MAX_CLOCK_SKEW_MS = 2_000;
/** Maximum delay until a key change is known to every gateway before a warning, in milliseconds. */
const MAX_SYNC_LAG_MS = 1_500;

/** Part of the current generation: its number and its config. */
interface AnsweringGeneration {
  readonly built: { readonly gen: { readonly number: number } };
  readonly config: {
    readonly hash: string;
    readonly listen: readonly { readonly host: string }[];
    readonly workers: number | "auto";
  };
}

/**
 * Returns the description of this gateway for the store and other gateways. Before the gateway
 * serves clients, `url` is empty and only basic fields are set.
 */
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

/**
 * Returns an address that other machines can reach if the gateway listens on all addresses. A Unix
 * socket has no such address.
 */
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

/**
 * Returns all gateways on the store. If the store does not answer in time, returns only this
 * gateway, with a warning.
 */
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
      ...(silent ? ["the store does not respond, so other gateways are not listed"] : []),
      ...fleetWarnings(nodes, all),
    ],
  };
}

/** Whether the instance is a command-line program. It does not serve clients and ends by itself. */
const isCommandProgram = ({ info }: InstanceState): boolean => info?.program === "command";

/**
 * Returns the stats of the fleet. Undefined if only one process uses the store, or if the store
 * does not answer in time.
 */
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
    return kinds.size > 1 ? [`${kinds.size} ${what} are in use at the same time`] : [];
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
        ? [`${instance} has not synchronized changes to keys or accounts for ${syncLagMs} ms`]
        : []),
    ]),
    ...all.flatMap(({ instance, state, openCalls = 0 }) =>
      state !== "live" && openCalls > 0
        ? [`${instance}, which is ${state}, has ${openCalls} open calls`]
        : [],
    ),
  ];
}

// Lists the gateways on one store.

const TIMEOUT_MS = 2_000;

/** Returns undefined if the store does not answer in time. */
export const readInstances = async (
  store: Pick<Store, "listInstances">,
): Promise<readonly InstanceState[] | undefined> =>
  store.listInstances && withTimeout(TIMEOUT_MS, store.listInstances()).catch(() => undefined);
