// A provider's model list, as any gateway on the store was told it last: for one whose provider cannot say.
import type { LiveList, Lists } from "../../catalogue/lists.ts";
import type { Scope } from "../../lib/scope.ts";
import { wallClock } from "../../lib/wall-clock.ts";
import type { OtherNodes } from "./nodes.ts";
import type { Peers } from "./peers.ts";

/** A question of its own among those of plugins. */
const LISTS = "lists";

type Whose = Readonly<Record<"provider" | "credential", string>>;

export interface KnownLists {
  readonly lists: Pick<Lists, "of" | "replace">;
  readonly elsewhere: Pick<OtherNodes, "all">;
}

const find = ({ lists }: Pick<KnownLists, "lists">, { provider, credential }: Whose) =>
  lists.of(provider)?.find((list) => list.credential === credential);

/** What this gateway was told, for the others. */
export const answeringLists = (
  known: Pick<KnownLists, "lists"> & { readonly peers: Pick<Peers, "answers"> },
  scope: Scope,
): void => known.peers.answers(scope, LISTS, (whose: Whose) => find(known, whose));

/** The newest that any of them was told, where that is newer than our own: taken as of when it was told. */
export async function listOfOthers(known: KnownLists, whose: Whose): Promise<void> {
  let newest = find(known, whose);
  for (const heard of (await known.elsewhere.all(LISTS, whose)) as readonly LiveList[])
    if (!newest || heard.at > newest.at) newest = heard;
  if (!newest || newest === find(known, whose)) return;
  // Another gateway's clock may be ahead.
  const at = Math.min(newest.at, wallClock());
  known.lists.replace(whose.provider, whose.credential, newest.models, at);
}
