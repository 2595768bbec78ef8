// Names in a question about the ledger. One that is none is told, with what was probably meant: a report that is empty for a slip of the
// finger says that nothing was used, and that is not so.
import { nearest } from "../../lib/text.ts";
import { fail } from "../../model/error.ts";
import type { KeyRecord } from "../../plugin/key.ts";
import type { LedgerQuery, Store, Total } from "../../plugin/store.ts";
import { isZone } from "../../lib/zone.ts";

const NAMED = [
  "account",
  "provider",
  "model",
  "label",
  "credential",
  "frontend",
  "outcome",
] as const satisfies readonly (keyof LedgerQuery)[];

/** Names that are there whatever the ledger says. */
export type KnownNames = { readonly [D in (typeof NAMED)[number]]?: readonly string[] };

/**
 * Asked when nothing was found: throws when that is because of a name that no row has, and that there is not otherwise. `within`: what is of
 * other accounts is not there for a giver that is held to this one, not even as the nearest name.
 */
export async function mustBe(
  query: LedgerQuery,
  store: Store,
  around: KnownNames,
  within: string | undefined,
): Promise<void> {
  for (const dimension of NAMED) {
    const said = query[dimension];
    // That its account is its own was asked at the gate.
    if (said === undefined || (within !== undefined && dimension === "account")) continue;
    const known = [...(around[dimension] ?? []), ...(await namesIn(store, dimension, within))];
    if (!known.includes(said)) unknownName(dimension, said, known);
  }
}

/** Each name as it may be said: an account by its own name too, a model by its provider's. */
async function namesIn(
  store: Store,
  dimension: (typeof NAMED)[number],
  account: string | undefined,
): Promise<string[]> {
  const names = new Set<string>();
  for (const state of [undefined, "void", "open"] as const)
    for (const { by } of await store.totals({ by: [dimension], state, account })) {
      const name = by[dimension] ?? "";
      if (name === "") continue;
      names.add(name);
      if (dimension === "model") names.add(name.slice(name.indexOf("/") + 1));
      if (dimension === "account") for (const part of name.split("/")) names.add(part);
    }
  return [...names];
}

function unknownName(dimension: string, said: string, known: readonly string[]): never {
  return fail(
    "not_found",
    `No row of the ledger is of the ${dimension} "${said}".${meant(said, known)}`,
    { param: dimension, code: "no_such_name" },
  );
}

function meant(said: string, known: Iterable<string>): string {
  const near = nearest(said, known);
  return near === undefined ? "" : ` Did you mean "${near}"?`;
}

/** By its id, or by the name that only one has. A key of which nothing is known here may have rows all the same. */
export async function keyOf(
  said: string | undefined,
  store: Pick<Store, "keys" | "entries">,
): Promise<string | undefined> {
  if (said === undefined) return undefined;
  const named = new Set<string>();
  const words: string[] = [];
  for await (const { id, name } of keysOf(store)) {
    if (id === said) return id;
    if (name === said) named.add(id);
    words.push(id, ...(name === undefined ? [] : [name]));
  }
  const [id, ...others] = named;
  if (others.length > 0)
    fail("invalid", `Several keys are named "${said}": say the id. ${[...named].join(", ")}`, {
      param: "key",
    });
  if (id !== undefined) return id;
  const { items } = await store.entries({ key: said }, { limit: 1 });
  if (items.length > 0) return said;
  return fail(
    "not_found",
    `There is no key "${said}", and no row of one. A key that stands in gateway.yaml is known here by its id.${meant(said, words)}`,
    { param: "key", code: "no_such_key" },
  );
}

/** What people call the keys of these sums, by their ids. */
export async function namesOf(
  sums: readonly Total[],
  store: Store,
): Promise<Readonly<Record<string, string>>> {
  const ids = new Set(sums.map(({ by }) => by["key"]));
  const names: Record<string, string> = {};
  for await (const { id, name } of keysOf(store))
    if (name !== undefined && ids.has(id)) names[id] = name;
  return names;
}

/** One by one, page by page. */
async function* keysOf(store: Pick<Store, "keys">): AsyncGenerator<KeyRecord, void> {
  let after: string | undefined;
  do {
    const page = await store.keys({ after, limit: 500 });
    yield* page.items;
    after = page.next ?? undefined;
  } while (after !== undefined);
}

/** Throws for one that there is not. */
export function zoneOf(said: string | undefined): string | undefined {
  if (said === undefined || isZone(said)) return said;
  const zones = Intl.supportedValuesOf("timeZone");
  return fail("invalid", `There is no time zone "${said}".${meant(said, zones)}`, {
    param: "tz",
    code: "no_such_zone",
  });
}
