// Shares model lists between gateways on the store, for a gateway that cannot reach a provider's
// list.
import type { ModelList, ModelLists } from "../../catalog/model-lists.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { PeerGateways, PluginPeers } from "./peer-gateways.ts";

/** Topic of the gateway's own messages on the channel that plugins use between gateways. */
const LISTS_TOPIC = "lists";

type ListOwner = Readonly<Record<"provider" | "credential", string>>;

export interface ListsAndPeers {
  readonly modelLists: Pick<ModelLists, "of" | "update">;
  readonly peerGateways: Pick<PeerGateways, "askAll">;
}

const findList = (
  { modelLists }: Pick<ListsAndPeers, "modelLists">,
  { provider, credential }: ListOwner,
) => modelLists.of(provider)?.find((list) => list.credential === credential);

/** Answers other gateways with the lists that this gateway received. */
export const answerListRequests = (
  known: Pick<ListsAndPeers, "modelLists"> & {
    readonly pluginPeers: Pick<PluginPeers, "register">;
  },
  scope: LifetimeScope,
): void =>
  known.pluginPeers.register(scope, LISTS_TOPIC, (whose: ListOwner) => findList(known, whose));

/**
 * Adopts the newest list of any gateway if it is newer than the local list. The list keeps its
 * original time.
 */
export async function adoptNewestPeerList(known: ListsAndPeers, whose: ListOwner): Promise<void> {
  let newest = findList(known, whose);
  for (const list of (await known.peerGateways.askAll(LISTS_TOPIC, whose)) as readonly ModelList[])
    if (!newest || list.at > newest.at) newest = list;
  if (!newest || newest === findList(known, whose)) return;
  // The clock of another gateway may be ahead.
  const at = Math.min(newest.at, wallClock());
  known.modelLists.update(whose.provider, whose.credential, newest.models, at);
}
