// Keys, as an operator handles them: made, listed, ended, replaced. The same commands on the control socket of a running
// gateway and on the store itself. No answer has a digest in it, and only a new key's own text is ever shown, once.
import { mint } from "../../lib/key.ts";
import { fail } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { KeyRecord, Limit, ResultPage, PageRequest } from "../../plugin/store.ts";
import type { ControlCommandsOf } from "./socket.ts";
import { number } from "./input.ts";

export interface KeyShelf {
  list(page: PageRequest): Promise<ResultPage<KeyRecord>>;
  /** Durable, and known everywhere, when it resolves. */
  write(record: KeyRecord): Promise<void>;
}

/** What a key's grants are compared with. Nothing is refused: what they name may come later. */
export interface Around {
  /** Whether there is a model, an alias or a provider that a pattern means. */
  model(pattern: string): boolean;
  frontend(name: string): boolean;
}

/** A key as it may be shown. Times are Unix milliseconds. */
export interface ShownKey extends Omit<KeyRecord, "digest"> {
  readonly state: "valid" | "expired" | "revoked";
}

const UNITS = ["requests", "concurrent", "tokens", "input", "output", "images", "nano_usd"];
const SPANS = ["minute", "hour", "day", "week", "month", "total", "open"];
const PRIVACY = ["off", "required", "strict"];

export function keyCommands(
  shelf: KeyShelf,
  now: () => number = Date.now,
  around?: () => Around,
): ControlCommandsOf {
  const shown = ({ digest: _, ...rest }: KeyRecord): ShownKey => ({
    ...rest,
    state: ended(rest.revoked) ? "revoked" : ended(rest.expires) ? "expired" : "valid",
  });
  const ended = (at: number | undefined) => at !== undefined && at <= now();

  async function all(): Promise<KeyRecord[]> {
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
  async function find(input: JsonObject): Promise<[KeyRecord, ...KeyRecord[]]> {
    const id =
      text(input, "id") ??
      fail("invalid", "Say which key: its id, as `tollgate keys list` shows it.");
    const keys = await all();
    const named = keys.filter((key) => key.name === id);
    const same = keys.filter((key) => key.id === id);
    const found = same.length > 0 ? same : named;
    if (new Set(found.map((key) => key.id)).size > 1)
      fail(
        "invalid",
        `Several keys are named "${id}": say the id. ${named.map((key) => key.id).join(", ")}`,
      );
    const [first, ...rest] = found.sort((a, b) => b.created - a.created);
    return first
      ? [first, ...rest]
      : fail("not_found", `There is no key "${id}".`, { code: "no_such_key" });
  }

  /** A command that says a name then needs the id. */
  async function sameName({ id, name }: KeyRecord): Promise<string[]> {
    if (name === undefined) return [];
    const same = (await all()).find((key) => key.name === name && shown(key).state === "valid");
    return same
      ? [`${same.id} is named "${name}" too: commands then need an id, this one's is ${id}.`]
      : [];
  }

  return {
    "keys.create": async (input) => {
      const key = mint();
      const record: KeyRecord = {
        ...grants(input, key.id),
        id: key.id,
        digest: key.digest,
        created: now(),
        expires: number(input, "expires"),
      };
      const warnings = [...(await sameName(record)), ...meansNothing(record, around?.())];
      await shelf.write(record);
      return { secret: key.secret, key: shown(record), warnings };
    },
    "keys.list": async () => ({ keys: (await all()).map(shown) }),
    "keys.show": async (input) => ({ keys: (await find(input)).map(shown) }),
    "keys.revoke": async (input) => {
      const keys = (await find(input)).map((key) => ({ ...key, revoked: key.revoked ?? now() }));
      for (const key of keys) await shelf.write(key);
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
      const until = now() + (number(input, "overlapMs") ?? 0);
      await shelf.write(record);
      for (const old of [latest, ...older].filter((each) => !ended(each.revoked)))
        await shelf.write({ ...old, expires: Math.min(old.expires ?? Infinity, until) });
      return { secret: key.secret, key: shown(record) };
    },
  };
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

function grants(input: JsonObject, id: string): Omit<KeyRecord, "id" | "digest" | "created"> {
  const privacy = text(input, "privacy");
  if (privacy !== undefined && !PRIVACY.includes(privacy))
    fail("invalid", `privacy is one of ${PRIVACY.join(", ")}.`, { param: "privacy" });
  const limits = (input["limits"] ?? []) as unknown as Partial<Limit>[];
  const labels = (input["labels"] ?? {}) as Record<string, string>;
  if (!Array.isArray(limits) || Object.values(labels).some((value) => typeof value !== "string"))
    fail("invalid", "limits are a list, and labels are words.");
  return {
    name: text(input, "name"),
    models: words(input, "models"),
    frontends: words(input, "frontends"),
    privacy: privacy as KeyRecord["privacy"],
    limits: limits.length > 0 ? limits.map((limit) => checked(limit, id)) : undefined,
    labels: Object.keys(labels).length > 0 ? labels : undefined,
  };
}

function checked({ unit, max, per }: Partial<Limit>, id: string): Limit {
  if (!UNITS.includes(unit!))
    fail("invalid", `A limit counts one of ${UNITS.join(", ")}.`, { param: "limits" });
  if (!SPANS.includes(per!))
    fail("invalid", `A limit is for one of ${SPANS.join(", ")}.`, { param: "limits" });
  if ((unit === "concurrent") !== (per === "open"))
    fail("invalid", "concurrent is counted while requests are open, and only that is.", {
      param: "limits",
    });
  if (!Number.isSafeInteger(max) || Number(max) < 0)
    fail("invalid", "A limit's max is a whole number.", { param: "limits" });
  return { scope: `key:${id}`, unit: unit!, max: max!, per: per! };
}

function text(input: JsonObject, name: string): string | undefined {
  const value = input[name];
  if (value === undefined || value === null) return undefined;
  return typeof value === "string" && value !== "" && value.length <= 200
    ? value
    : fail("invalid", `${name} is a word or a few.`, { param: name });
}

function words(input: JsonObject, name: string): string[] | undefined {
  const value = input[name];
  if (value === undefined || value === null) return undefined;
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string")
    ? [...(value as string[])]
    : fail("invalid", `${name} is a list of words.`, { param: name });
}
