// Keys that were asked for of late, for when the database is away: a client whose key was there a moment ago is not turned away for it. What is heard
// of a change of any key takes all of them away.
import type { KeyRecord, Store, StoreCommand, StoreNews } from "tollgate/plugin";
import type { Apart } from "./slice-questions.ts";
import { unreachable } from "./trouble.ts";

/** The oldest go first. */
const MOST = 10_000;

export interface RememberedKeys {
  key: Store["key"];
  /** News passes by. */
  hearing(told: (news: StoreNews) => void): (news: StoreNews) => void;
  /** This batch was written here. */
  written(batch: readonly StoreCommand[]): void;
}

/** `away`: how long a key is remembered; undefined: a gateway that does not go on alone remembers none. */
export function rememberedKeys(
  ask: Store["key"],
  node: { readonly apart: boolean },
  away: Apart | undefined,
): RememberedKeys {
  const known = new Map<string, { readonly record: KeyRecord; readonly until: number }>();
  /** Answers to what was asked before the last change are not remembered. */
  let age = 0;
  const forget = (): void => {
    age++;
    known.clear();
  };
  const remembered = async (digest: string, { forMs }: Apart): Promise<KeyRecord | undefined> => {
    const now = performance.now();
    if (node.apart) {
      const found = known.get(digest);
      if (found && found.until > now) return found.record;
      return unreachable(new Error("the key was not asked for of late"));
    }
    const asked = age;
    const record = await ask(digest);
    known.delete(digest);
    if (record && asked === age) known.set(digest, { record, until: now + forMs });
    if (known.size > MOST) known.delete(known.keys().next().value!);
    return record;
  };
  return {
    key: away ? (digest) => remembered(digest, away) : ask,
    hearing: (told) => (news) => {
      if (news.type === "keys") forget();
      told(news);
    },
    written(batch) {
      if (batch.some((c) => c.do === "key")) forget();
    },
  };
}
