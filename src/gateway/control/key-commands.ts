// Keys, as an operator handles them: made, listed, changed, ended, replaced. The same commands on the control socket of a running
// gateway and on the store itself. No answer has a digest in it, and only a new key's own text is ever shown, once.
import { wallClock } from "../../lib/wall-clock.ts";
import { mint } from "../../lib/key.ts";
import { fail } from "../../model/error.ts";
import type { LimitCount } from "../../plugin/limit.ts";
import type { Identity } from "../../plugin/identity.ts";
import type { KeyRecord } from "../../plugin/key.ts";
import { type AccountTree, treeOf } from "./account-tree.ts";
import {
  type Around,
  changed,
  labelsOf,
  limitsOf,
  parsed,
  mustBeAt,
  mustStand,
  said,
  type ShownCount,
  shownCount,
  shownLimits,
  warnings,
} from "./grants.ts";
import { answering } from "./input.ts";
import { meantBy } from "./named-key.ts";
import { openingOf } from "./opening.ts";
import type { Shelf } from "./shelf.ts";
import type { InputOf } from "./table.ts";

/** A key as it may be shown. Times are Unix milliseconds. */
export interface ShownKey extends Omit<KeyRecord, "digest" | "limits"> {
  /** Each as in usd=5/month. */
  readonly limits?: readonly string[];
  readonly state: "valid" | "expired" | "revoked";
  readonly version: number;
  /** What its limits have counted, and shown alone those of its accounts too; absent where the store cannot tell. */
  readonly counted?: readonly ShownCount[];
}

export const keyCommands = (shelf: Shelf, around: () => Around, now: () => number = wallClock) =>
  new KeyDesk(shelf, around, now).commands();

class KeyDesk {
  readonly #shelf: Shelf;
  readonly #around: () => Around;
  readonly #now: () => number;

  constructor(shelf: Shelf, around: () => Around, now: () => number) {
    this.#shelf = shelf;
    this.#around = around;
    this.#now = now;
  }

  commands() {
    return answering({
      "keys.list": () => this.#list(),
      "keys.show": (input) => this.#show(input),
      "keys.create": (input, _giver, id) => this.#create(input, id),
      "keys.import": (input) => this.#import(input),
      "keys.update": (input) => this.#update(input),
      "keys.revoke": (input) => this.#revoke(input),
      "keys.move": (input) => this.#move(input),
      "keys.rotate": (input) => this.#rotate(input),
    });
  }

  async #list() {
    const keys = await this.#shelf.keys();
    const counted = await this.#shelf.counted(keys.flatMap(({ limits }) => limits ?? []));
    let at = 0;
    return {
      keys: keys.map((key) => {
        const own = counted.slice(at, (at += key.limits?.length ?? 0));
        return this.#shown(key, own);
      }),
    };
  }

  async #show({ id }: InputOf<"keys.show">) {
    const keys = await this.#found(id);
    const { account, limits = [] } = keys[0];
    const tree = await this.#tree();
    const outer = account === undefined ? [] : tree.chain(account);
    const all = [...limits, ...outer.flatMap((each) => each.limits ?? [])];
    const counted = await this.#shelf.counted(all);
    return { keys: keys.map((key) => this.#shown(key, counted)) };
  }

  async #create(input: InputOf<"keys.create">, id?: string) {
    const key = mint(id);
    const { record, warned } = this.#made(input, key.id, key.digest, await this.#tree(), true);
    const warnings = [...(await this.#sameName(record)), ...warned];
    await this.#shelf.write(record);
    this.#tell("made", record.id);
    return { secret: key.secret, key: this.#shown(record), warnings };
  }

  /** A key that is there already stays as it is: an import may be done again. */
  async #import({ keys, defaults = false }: InputOf<"keys.import">) {
    const there = new Set((await this.#shelf.keys()).map(({ digest }) => digest));
    const tree = await this.#tree();
    const made = keys
      .filter(({ digest }) => !there.has(digest) && there.add(digest))
      .map(({ digest, revoked, spent: _, ...grants }) => {
        const of = this.#made({ ...grants, defaults }, mint().id, digest, tree, false);
        return revoked ? { ...of, record: { ...of.record, revoked: this.#now() } } : of;
      });
    for (const { record } of made) {
      await this.#shelf.write(record);
      this.#tell("made", record.id);
    }
    await this.#open(new Map(keys.map(({ digest, spent = 0 }) => [digest, BigInt(spent)])), tree);
    return {
      keys: made.map(({ record }) => this.#shown(record)),
      there: keys.length - made.length,
      warnings: [...new Set(made.flatMap(({ warned }) => warned))],
    };
  }

  /** Of those that are there, whenever they came: an opening that is done again changes nothing. */
  async #open(spent: ReadonlyMap<string, bigint>, tree: AccountTree): Promise<void> {
    for (const key of await this.#shelf.keys()) {
      const spentNano = spent.get(key.digest) ?? 0n;
      if (spentNano === 0n) continue;
      const outer = key.account === undefined ? [] : tree.chain(key.account);
      const limits = [...(key.limits ?? []), ...outer.flatMap((each) => each.limits ?? [])];
      const account = key.account === undefined ? undefined : tree.path(key.account);
      const opening = openingOf({ key, limits, account, spentNano, at: this.#now() });
      await this.#shelf.writeOpening(opening);
    }
  }

  async #update({ id, version, ...input }: InputOf<"keys.update">) {
    const [latest, ...older] = await this.#found(id);
    mustBeAt(version, `key "${id}"`, versionOf(latest));
    if (input.account !== undefined && input.account !== null)
      mustStand(input.account, await this.#tree(), "/account");
    const change = (key: KeyRecord, expires: number | undefined): KeyRecord => ({
      ...key,
      name: said(input.name, key.name),
      models: said(input.models, key.models),
      frontends: said(input.frontends, key.frontends),
      privacy: said(input.privacy, key.privacy),
      account: said(input.account, key.account),
      limits: changed(input.limits, key.limits, (limits) =>
        limitsOf(parsed(limits), `key:${key.id}`),
      ),
      labels: changed(input.labels, key.labels, labelsOf),
      expires,
    });
    const keys = [
      change(latest, said(input.expires, latest.expires)),
      // A secret that was replaced does not live longer than it was to.
      ...older.map((key) =>
        change(key, input.expires ? Math.min(input.expires, key.expires ?? Infinity) : key.expires),
      ),
    ];
    const written = await this.#write(keys, input.account === undefined ? "updated" : "moved");
    return { keys: written, warnings: warnings(keys[0]!, this.#around()) };
  }

  async #revoke({ id, version }: InputOf<"keys.revoke">) {
    const keys = await this.#found(id);
    mustBeAt(version, `key "${id}"`, versionOf(keys[0]));
    const ended = keys.map((key) => ({ ...key, revoked: key.revoked ?? this.#now() }));
    return { keys: await this.#write(ended, "revoked") };
  }

  /** Rows that it has written say where it stood then. */
  async #move({ id, account, version }: InputOf<"keys.move">) {
    mustStand(account, await this.#tree(), "/account");
    const keys = await this.#found(id);
    mustBeAt(version, `key "${id}"`, versionOf(keys[0]));
    return {
      keys: await this.#write(
        keys.map((key) => ({ ...key, account })),
        "moved",
      ),
    };
  }

  /** The same key to the ledger and its limits, under a new secret; the old one lives on for a while. */
  async #rotate({ id, overlapMs = 0, version }: InputOf<"keys.rotate">) {
    const [latest, ...older] = await this.#found(id);
    mustBeAt(version, `key "${id}"`, versionOf(latest));
    if (this.#ended(latest.revoked))
      fail("conflict", `The key "${latest.id}" is revoked. Make a new one.`, {
        code: "key_revoked",
      });
    const key = mint(latest.id);
    const until = this.#now() + overlapMs;
    // The newest is told by its moment.
    const created = Math.max(this.#now(), latest.created + 1);
    const record = next({ ...latest, digest: key.digest, created });
    await this.#shelf.write(record);
    for (const old of [latest, ...older].filter((each) => !this.#ended(each.revoked)))
      await this.#shelf.write(next({ ...old, expires: Math.min(old.expires ?? Infinity, until) }));
    this.#tell("rotated", record.id);
    return { secret: key.secret, key: this.#shown(record) };
  }

  /** A new one, with what new keys get where it stands. */
  #made(
    input: InputOf<"keys.create">,
    id: string,
    digest: string,
    tree: AccountTree,
    defaults: boolean,
  ): { record: KeyRecord; warned: string[] } {
    const { name, models, frontends, privacy, account, expires, labels } = input;
    const limits = parsed(input.limits ?? []);
    mustStand(account, tree, "/account");
    const usual =
      (input.defaults ?? defaults) ? tree.defaults(account, this.#around().defaults) : [];
    const more = usual.filter(({ unit }) => !limits.some((own) => own.unit === unit));
    const record: KeyRecord = {
      name,
      models,
      frontends,
      privacy,
      account,
      limits: limitsOf([...limits, ...more], `key:${id}`),
      labels: labelsOf(labels),
      id,
      digest,
      created: this.#now(),
      expires,
    };
    return { record, warned: warnings(record, this.#around()) };
  }

  async #write(keys: readonly KeyRecord[], change: "moved" | "updated" | "revoked") {
    const written = keys.map(next);
    for (const key of written) await this.#shelf.write(key);
    this.#tell(change, written[0]!.id);
    return written.map((key) => this.#shown(key));
  }

  #tree(): Promise<AccountTree> {
    return treeOf(this.#shelf, this.#around().accounts);
  }

  async #found(id: string): Promise<[KeyRecord, ...KeyRecord[]]> {
    return meantBy(await this.#shelf.keys(), id);
  }

  /** A command that says a name then needs the id. */
  async #sameName({ id, name }: KeyRecord): Promise<string[]> {
    if (name === undefined) return [];
    const same = (await this.#shelf.keys()).find(
      (key) => key.name === name && this.#shown(key).state === "valid",
    );
    return same
      ? [`${same.id} is named "${name}" too: commands then need an id, this one's is ${id}.`]
      : [];
  }

  #shown({ digest: _, limits, ...key }: KeyRecord, counted: readonly LimitCount[] = []): ShownKey {
    const { revoked, expires } = key;
    return {
      ...key,
      ...shownLimits({ limits }),
      state: this.#ended(revoked) ? "revoked" : this.#ended(expires) ? "expired" : "valid",
      version: key.version ?? 1,
      ...(counted.length > 0 && { counted: counted.map(shownCount) }),
    };
  }

  #ended(at: number | undefined): boolean {
    return at !== undefined && at <= this.#now();
  }

  #tell(change: "made" | "moved" | "updated" | "rotated" | "revoked", id: string): void {
    this.#shelf.changed?.({ type: "key", change }, id);
  }
}

/** What a client with this key would be. Fails where there is none, or it has ended. */
export async function identityOf(
  shelf: Pick<Shelf, "keys">,
  said: string,
  now: number,
): Promise<Identity> {
  const [key] = meantBy(await shelf.keys(), said);
  const { id, name, models, frontends, privacy, limits, labels, account } = key;
  if ([key.revoked, key.expires].some((end) => end !== undefined && end <= now))
    fail("conflict", `The key "${said}" has ended: each of its requests is refused.`, {
      code: "key_ended",
    });
  return { id, name, models, frontends, privacy, limits, labels, account };
}

const versionOf = ({ version = 1 }: KeyRecord): number => version;
const next = (key: KeyRecord): KeyRecord => ({ ...key, version: versionOf(key) + 1 });
