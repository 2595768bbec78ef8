// A provider's model list, as another gateway on the store was told it last: for one that has never been told, while the provider cannot say.
import type { LiveList, Lists } from "../../catalogue/lists.ts";
import type { Scope } from "../../lib/scope.ts";
import type { Peers } from "./peers.ts";

/** A question of its own among those of plugins. */
const LISTS = "lists";

type Whose = Readonly<Record<"provider" | "credential", string>>;

export interface KnownLists {
  readonly lists: Pick<Lists, "of" | "replace">;
  readonly peers: Pick<Peers, "ask" | "answers">;
}

const find = ({ lists }: KnownLists, { provider, credential }: Whose): LiveList | undefined =>
  lists.of(provider)?.find((list) => list.credential === credential);

/** What this gateway was told, for the others. */
export const answeringLists = (known: KnownLists, scope: Scope): void =>
  known.peers.answers(scope, LISTS, (whose: Whose) => find(known, whose));

/** Taken as of when the other one was told. */
export async function listOfOthers(known: KnownLists, whose: Whose): Promise<void> {
  if (find(known, whose)) return;
  const heard = (await known.peers.ask(LISTS, whose)) as LiveList | undefined;
  if (heard) known.lists.replace(whose.provider, whose.credential, heard.models, heard.at);
}
