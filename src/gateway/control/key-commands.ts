// Keys, as an operator handles them: made, listed, ended, replaced. The same commands on the control socket of a running
// gateway and on the store itself. No answer has a digest in it, and only a new key's own text is ever shown, once.
import { wallClock } from "../../lib/wall-clock.ts";
import { mint } from "../../lib/key.ts";
import { nearest } from "../../lib/text.ts";
import { fail } from "../../model/error.ts";
import type { Limit } from "../../plugin/limit.ts";
import type { KeyRecord, ResultPage, PageRequest } from "../../plugin/store.ts";
import { answering } from "./input.ts";
import type { InputOf } from "./table.ts";

export interface KeyShelf {
  list(page: PageRequest): Promise<ResultPage<KeyRecord>>;
  /** Durable, and known everywhere, when it resolves. */
  write(record: KeyRecord): Promise<void>;
  /** Hears, when it is so, of a key that was made, given a new secret or ended. */
  changed?(change: "made" | "moved" | "rotated" | "revoked", id: string): void;
}

/** What a key's grants are compared with. Nothing is refused: what they name may come later. */
export interface Around {
  /** Whether there is a model, an alias or a provider that a pattern means. */
  model(pattern: string): boolean;
  frontend(name: string): boolean;
  readonly accounts: readonly string[];
}

/** A key as it may be shown. Times are Unix milliseconds. */
export interface ShownKey extends Omit<KeyRecord, "digest"> {
  readonly state: "valid" | "expired" | "revoked";
}

export function keyCommands(shelf: KeyShelf, now: () => number = wallClock, around?: () => Around) {
  const shown = ({ digest: _, ...rest }: KeyRecord): ShownKey => ({
    ...rest,
    state: ended(rest.revoked) ? "revoked" : ended(rest.expires) ? "expired" : "valid",
  });
  const ended = (at: number | undefined) => at !== undefined && at <= now();

  const find = ({ id }: InputOf<"keys.show">) => found(shelf, id);

  /** A command that says a name then needs the id. */
  async function sameName({ id, name }: KeyRecord): Promise<string[]> {
    if (name === undefined) return [];
    const same = (await all(shelf)).find(
      (key) => key.name === name && shown(key).state === "valid",
    );
    return same
      ? [`${same.id} is named "${name}" too: commands then need an id, this one's is ${id}.`]
      : [];
  }

  return answering({
    "keys.create": async (input) => {
      const key = mint();
      const record: KeyRecord = {
        ...grants(input, key.id),
        id: key.id,
        digest: key.digest,
        created: now(),
        expires: input.expires,
      };
      mustStand(record.account, around?.());
      const warnings = [...(await sameName(record)), ...meansNothing(record, around?.())];
      await shelf.write(record);
      shelf.changed?.("made", record.id);
      return { secret: key.secret, key: shown(record), warnings };
    },
    "keys.list": async () => ({ keys: (await all(shelf)).map(shown) }),
    "keys.show": async (input) => ({ keys: (await find(input)).map(shown) }),
    "keys.revoke": async (input) => {
      const keys = (await find(input)).map((key) => ({ ...key, revoked: key.revoked ?? now() }));
      for (const key of keys) await shelf.write(key);
      shelf.changed?.("revoked", keys[0]!.id);
      return { keys: keys.map(shown) };
    },
    /** Rows that it has written say where it stood then. */
    "keys.move": async (input) => {
      mustStand(input.account, around?.());
      const keys = (await find(input)).map((key) => ({ ...key, account: input.account }));
      for (const key of keys) await shelf.write(key);
      shelf.changed?.("moved", keys[0]!.id);
      return { keys: keys.map(shown) };
    },
    /** The same key to the ledger and its limits, under a new secret; the old one lives on for a while. */
    "keys.rotate": async (input) => {
      const [latest, ...older] = await find(input);
      if (ended(latest.revoked))
        fail("conflict", `The key "${latest.id}" is revoked. Make a new one.`, {
          code: "key_revoked",
        });
      const key = mint(latest.id);
      const record: KeyRecord = { ...latest, digest: key.digest, created: now() };
      const until = now() + (input.overlapMs ?? 0);
      await shelf.write(record);
      for (const old of [latest, ...older].filter((each) => !ended(each.revoked)))
        await shelf.write({ ...old, expires: Math.min(old.expires ?? Infinity, until) });
      shelf.changed?.("rotated", record.id);
      return { secret: key.secret, key: shown(record) };
    },
  });
}

async function all(shelf: KeyShelf): Promise<KeyRecord[]> {
  const found: KeyRecord[] = [];
  let after: string | undefined;
  do {
    const page = await shelf.list({ after, limit: 500 });
    found.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return found;
}

/** By id, by name where only one has it; the newest first: a rotated key is there twice for a while. */
async function found(shelf: KeyShelf, id: string): Promise<[KeyRecord, ...KeyRecord[]]> {
  const keys = await all(shelf);
  const named = keys.filter((key) => key.name === id);
  const same = keys.filter((key) => key.id === id);
  const meant = same.length > 0 ? same : named;
  if (new Set(meant.map((key) => key.id)).size > 1)
    fail(
      "invalid",
      `Several keys are named "${id}": say the id. ${named.map((key) => key.id).join(", ")}`,
    );
  const [first, ...rest] = meant.sort((a, b) => b.created - a.created);
  return first
    ? [first, ...rest]
    : fail("not_found", `There is no key "${id}".`, { code: "no_such_key" });
}

/** Every request of a key whose account is not there is refused. */
function mustStand(account: string | undefined, around?: Around): void {
  if (account === undefined || !around || around.accounts.includes(account)) return;
  const near = nearest(account, around.accounts);
  fail(
    "invalid",
    `There is no account "${account}" in gateway.yaml.${near === undefined ? "" : ` Did you mean "${near}"?`}`,
    { code: "unknown_account", param: "/account" },
  );
}

function meansNothing({ models, frontends }: KeyRecord, around?: Around): string[] {
  if (!around) return [];
  const model = (models ?? []).filter((pattern) => !around.model(pattern));
  const frontend = (frontends ?? []).filter((name) => !around.frontend(name));
  return [
    ...model.map((pattern) => `Nothing that is here matches the model "${pattern}".`),
    ...frontend.map((name) => `No frontend that is here is named "${name}".`),
  ];
}

function grants(
  { name, models, frontends, privacy, account, limits = [], labels = {} }: InputOf<"keys.create">,
  id: string,
): Omit<KeyRecord, "id" | "digest" | "created"> {
  return {
    name,
    models,
    frontends,
    privacy,
    account,
    limits: limits.length > 0 ? limits.map((limit) => checked(limit, id)) : undefined,
    labels: Object.keys(labels).length > 0 ? (labels as Record<string, string>) : undefined,
  };
}

function checked({ unit, max, per }: Omit<Limit, "scope">, id: string): Limit {
  if ((unit === "concurrent") !== (per === "open"))
    fail("invalid", "/limits: concurrent is counted while requests are open, and only that is.", {
      param: "/limits",
      code: "bad_input",
    });
  return { scope: `key:${id}`, unit, max, per };
}
