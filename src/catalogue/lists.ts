// The live lists: what each credential of each provider was last told it may call. They outlive generations of the
// config and, on disk, the process, so that an upstream which is down takes nothing away.
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { wallClock } from "../lib/wall-clock.ts";
import type { ModelInfo } from "../model/facts.ts";
import { readList } from "./reading.ts";

/** One credential's list. */
export interface LiveList {
  readonly credential: string;
  /** Unix milliseconds: when upstream last said so. */
  readonly at: number;
  readonly models: readonly ModelInfo[];
}

export interface Lists {
  /** Moves whenever a list changes. */
  readonly version: number;
  /** In the order in which credentials were first heard; undefined: never heard. */
  of(provider: string): readonly LiveList[] | undefined;
  /** Those that were heard. */
  providers(): readonly string[];
  /** Takes a new list in place of the old one, or throws and keeps the old one. Says whether anything differs. */
  replace(provider: string, credential: string, models: unknown, at: number): boolean;
  /** Forgets the lists of credentials that are not among these. */
  keep(provider: string, credentials: readonly string[]): void;
  /** Called after a change, with the provider's name. Returns the undo. */
  onChange(tell: (provider: string) => void): () => void;
  /** The same, also where a list is what it was and only of a later moment. */
  onHeard(tell: (provider: string) => void): () => void;
  /** Resolves when everything is on disk that will be. */
  saved(): Promise<void>;
  /** Files that were not taken when the gateway started, and writes that failed. */
  readonly problems: readonly string[];
}

/** A file beyond this is not ours. */
const FILE_CAP = 32 * 1024 * 1024;
const FORMAT = 1;
const MOST_PROBLEMS = 20;

/** Without a folder, in memory only. */
export async function openLists(dir?: string): Promise<Lists> {
  const lists = new LiveLists(dir);
  await lists.load();
  return lists;
}

/** In memory only, and at once. */
export const createLists = (): Lists => new LiveLists(undefined);

class LiveLists implements Lists {
  version = 0;
  readonly problems: string[] = [];
  readonly #heard = new Map<string, readonly LiveList[]>();
  readonly #tell = new Set<(provider: string) => void>();
  readonly #tellHeard = new Set<(provider: string) => void>();
  readonly #writing = new Map<string, Promise<void>>();
  readonly #dirty = new Set<string>();
  readonly #dir: string | undefined;

  constructor(dir: string | undefined) {
    this.#dir = dir;
  }

  of(provider: string): readonly LiveList[] | undefined {
    return this.#heard.get(provider);
  }

  providers(): readonly string[] {
    return [...this.#heard.keys()];
  }

  replace(provider: string, credential: string, models: unknown, at: number): boolean {
    const heard: LiveList = { credential, at, models: readList(models) };
    const before = this.#heard.get(provider) ?? [];
    const old = before.find((h) => h.credential === credential);
    const changed = !old || JSON.stringify(old.models) !== JSON.stringify(heard.models);
    this.#heard.set(
      provider,
      old ? before.map((h) => (h === old ? heard : h)) : [...before, heard],
    );
    this.#taken(provider, changed);
    return changed;
  }

  keep(provider: string, credentials: readonly string[]): void {
    const before = this.#heard.get(provider);
    const after = before?.filter((h) => credentials.includes(h.credential));
    if (!before || !after || after.length === before.length) return;
    if (after.length > 0) this.#heard.set(provider, after);
    else this.#heard.delete(provider);
    this.#taken(provider, true);
  }

  onChange(tell: (provider: string) => void): () => void {
    this.#tell.add(tell);
    return () => this.#tell.delete(tell);
  }

  onHeard(tell: (provider: string) => void): () => void {
    this.#tellHeard.add(tell);
    return () => this.#tellHeard.delete(tell);
  }

  async saved(): Promise<void> {
    while (this.#writing.size > 0) await Promise.all(this.#writing.values());
  }

  async load(): Promise<void> {
    if (this.#dir === undefined) return;
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#dir)) {
      // What a crash left half written.
      if (name.endsWith(".tmp")) await rm(join(this.#dir, name), { force: true });
      if (!name.endsWith(".json")) continue;
      try {
        const path = join(this.#dir, name);
        if ((await stat(path)).size > FILE_CAP) throw new Error("the file is too large");
        this.#take(providerOf(name), JSON.parse(await readFile(path, "utf8")));
      } catch (error) {
        this.#problem(`${name} was not taken: ${(error as Error).message}`);
      }
    }
  }

  #take(provider: string, kept: { format?: unknown; lists?: unknown } | null): void {
    if (kept?.format !== FORMAT || !Array.isArray(kept.lists))
      throw new Error("it is not a list of models that this version wrote");
    const heard = kept.lists.map((list: Record<string, unknown> | null): LiveList => {
      const { credential, at, models } = list ?? {};
      if (typeof credential !== "string" || typeof at !== "number" || !Number.isFinite(at))
        throw new Error("it does not say whose list it is, or from when");
      return { credential, at: Math.min(at, wallClock()), models: readList(models) };
    });
    if (heard.length > 0) this.#heard.set(provider, heard);
  }

  #taken(provider: string, changed: boolean): void {
    if (changed) this.version++;
    const told = changed ? [...this.#tell, ...this.#tellHeard] : this.#tellHeard;
    for (const tell of told) tell(provider);
    this.#save(provider);
  }

  /** One writer a provider; what changes while it writes is written after it. */
  #save(provider: string): void {
    if (this.#dir === undefined) return;
    this.#dirty.add(provider);
    if (this.#writing.has(provider)) return;
    const writing = (async () => {
      while (this.#dirty.delete(provider)) await this.#write(provider);
    })()
      .catch((error: Error) =>
        this.#problem(`${provider}: the list could not be kept on disk: ${error.message}`),
      )
      .finally(() => this.#writing.delete(provider));
    this.#writing.set(provider, writing);
  }

  async #write(provider: string): Promise<void> {
    const path = join(this.#dir!, fileOf(provider));
    const lists = this.#heard.get(provider);
    if (!lists) return rm(path, { force: true });
    // Never in place: a reader, or a crash, sees the old file or the new one.
    const half = `${path}.${process.pid}.tmp`;
    const file = await open(half, "w", 0o600);
    try {
      await file.writeFile(JSON.stringify({ format: FORMAT, lists }));
      await file.sync();
    } finally {
      await file.close();
    }
    return rename(half, path);
  }

  #problem(words: string): void {
    this.problems.push(words);
    if (this.problems.length > MOST_PROBLEMS) this.problems.shift();
  }
}

/** A provider's name is the operator's; a file's name must not lead anywhere. */
const fileOf = (provider: string): string =>
  `${encodeURIComponent(provider).replaceAll(".", "%2E")}.json`;
const providerOf = (file: string): string => decodeURIComponent(file.slice(0, -".json".length));
