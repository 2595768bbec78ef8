// A provider's model list, as any gateway on the store was told it last: for one whose provider cannot say.
import type { ModelList, ModelLists } from "../../catalog/model-lists.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { PeerGateways } from "./peer-gateways.ts";
import type { PluginPeers } from "./plugin-peers.ts";

/** A question of its own among those of plugins. */
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

/** What this gateway was told, for the others. */
export const answerListRequests = (
  known: Pick<ListsAndPeers, "modelLists"> & {
    readonly pluginPeers: Pick<PluginPeers, "register">;
  },
  scope: LifetimeScope,
): void =>
  known.pluginPeers.register(scope, LISTS_TOPIC, (whose: ListOwner) => findList(known, whose));

/** The newest that any of them was told, where that is newer than our own: taken as of when it was told. */
export async function adoptNewestPeerList(known: ListsAndPeers, whose: ListOwner): Promise<void> {
  let newest = findList(known, whose);
  for (const heard of (await known.peerGateways.askAll(LISTS_TOPIC, whose)) as readonly ModelList[])
    if (!newest || heard.at > newest.at) newest = heard;
  if (!newest || newest === findList(known, whose)) return;
  // Another gateway's clock may be ahead.
  const at = Math.min(newest.at, wallClock());
  known.modelLists.update(whose.provider, whose.credential, newest.models, at);
}
