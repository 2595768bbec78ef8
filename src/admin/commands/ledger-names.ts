// Validates names in a ledger query. An unknown name is reported with the most similar known one.
// An empty report because of a typo would wrongly indicate that there was no usage.
import { didYouMean } from "../../lib/text.ts";
import { fail } from "../../model/error.ts";
import type { KeyRecord } from "../../plugin/store/account.ts";
import type { LedgerQuery, Store, LedgerTotal } from "../../plugin/store/store.ts";
import { isTimeZone } from "../../lib/time/time-zone.ts";

const NAMED_DIMENSIONS = [
  "account",
  "provider",
  "model",
  "label",
  "credential",
  "frontend",
  "outcome",
] as const satisfies readonly (keyof LedgerQuery)[];

/** Names that are valid regardless of the ledger. */
export type KnownNames = { readonly [D in (typeof NAMED_DIMENSIONS)[number]]?: readonly string[] };

/**
 * Called if a query found nothing. Throws if the query contains a name that neither a row nor
 * another source contains. For a principal that is limited to an account, names of other accounts
 * count as unknown and are not suggested.
 */
export async function assertKnownNames(
  query: LedgerQuery,
  store: Store,
  targets: KnownNames,
  account: string | undefined,
): Promise<void> {
  for (const dimension of NAMED_DIMENSIONS) {
    const name = query[dimension];
    // The dispatcher has already verified the principal's account.
    if (name === undefined || (account !== undefined && dimension === "account")) continue;
    const known = [...(targets[dimension] ?? []), ...(await listNames(store, dimension, account))];
    if (!known.includes(name)) failUnknownName(dimension, name, known);
  }
}

/**
 * Returns the names in each accepted form: an account also by its own name, and a model also
 * without its provider.
 */
async function listNames(
  store: Store,
  dimension: (typeof NAMED_DIMENSIONS)[number],
  account: string | undefined,
): Promise<string[]> {
  const names = new Set<string>();
  for (const state of [undefined, "void", "open"] as const)
    for (const { by } of await store.sumEntries({ by: [dimension], state, account })) {
      const name = by[dimension] ?? "";
      if (name === "") continue;
      names.add(name);
      if (dimension === "model") names.add(name.slice(name.indexOf("/") + 1));
      if (dimension === "account") for (const part of name.split("/")) names.add(part);
    }
  return [...names];
}

function failUnknownName(dimension: string, name: string, known: readonly string[]): never {
  return fail(
    "not_found",
    `No ledger row has the ${dimension} "${name}".${didYouMean(name, known)}`,
    { param: dimension, code: "no_such_name" },
  );
}

/**
 * Returns the ID of a key that is given by its ID or by a unique name. An unknown key may still
 * have rows.
 */
export async function resolveKeyId(
  idOrName: string | undefined,
  store: Pick<Store, "listKeys" | "listEntries">,
): Promise<string | undefined> {
  if (idOrName === undefined) return undefined;
  const named = new Set<string>();
  const words: string[] = [];
  for await (const { id, name } of iterateKeys(store)) {
    if (id === idOrName) return id;
    if (name === idOrName) named.add(id);
    words.push(id, ...(name === undefined ? [] : [name]));
  }
  const [id, ...others] = named;
  if (others.length > 0)
    fail("invalid", `Several keys are named "${idOrName}". Use an ID: ${[...named].join(", ")}`, {
      param: "key",
    });
  if (id !== undefined) return id;
  const { items } = await store.listEntries({ key: idOrName }, { limit: 1 });
  if (items.length > 0) return idOrName;
  return fail(
    "not_found",
    `Key "${idOrName}" not found, and no ledger row has it. Use the ID for a key that is defined in gateway.yaml.${didYouMean(idOrName, words)}`,
    { param: "key", code: "no_such_key" },
  );
}

/** Returns the names of the keys in these sums, by their IDs. */
export async function keyNamesOf(
  sums: readonly LedgerTotal[],
  store: Store,
): Promise<Readonly<Record<string, string>>> {
  const ids = new Set(sums.map(({ by }) => by["key"]));
  const names: Record<string, string> = {};
  for await (const { id, name } of iterateKeys(store))
    if (name !== undefined && ids.has(id)) names[id] = name;
  return names;
}

/** Yields all keys, page by page. */
async function* iterateKeys(store: Pick<Store, "listKeys">): AsyncGenerator<KeyRecord, void> {
  let after: string | undefined;
  do {
    const page = await store.listKeys({ after, limit: 500 });
    yield* page.items;
    after = page.next ?? undefined;
  } while (after !== undefined);
}

/** Returns the time zone. Throws if it does not exist. */
export function parseTimeZone(name: string | undefined): string | undefined {
  if (name === undefined || isTimeZone(name)) return name;
  const zones = Intl.supportedValuesOf("timeZone");
  return fail("invalid", `Unknown time zone "${name}".${didYouMean(name, zones)}`, {
    param: "tz",
    code: "no_such_zone",
  });
}
