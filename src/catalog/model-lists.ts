// The live lists: what each credential of each provider was last told it may call. They outlive generations of the
// config and, on disk, the process, so that an upstream which is down takes nothing away.
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { wallClock } from "../lib/time/wall-clock.ts";
import type { ModelInfo } from "../model/facts.ts";
import { parseModelList } from "./parse-model-list.ts";

/** One credential's list. */
export interface ModelList {
  readonly credential: string;
  /** Unix milliseconds: when upstream last said so. */
  readonly at: number;
  readonly models: readonly ModelInfo[];
}

export interface ModelLists {
  /** Moves whenever a list changes. */
  readonly version: number;
  /** In the order in which credentials were first heard; undefined: never heard. */
  of(provider: string): readonly ModelList[] | undefined;
  /** Those that were heard. */
  providers(): readonly string[];
  /** Takes a new list in place of the old one, or throws and keeps the old one. Says whether anything differs. */
  update(provider: string, credential: string, models: unknown, at: number): boolean;
  /** Forgets the lists of credentials that are not among these. */
  retainCredentials(provider: string, credentials: readonly string[]): void;
  /** Called after a change, with the provider's name. Returns the undo. */
  onChange(tell: (provider: string) => void): () => void;
  /** The same, also where a list is what it was and only of a later moment. */
  onRefresh(tell: (provider: string) => void): () => void;
  /** Resolves when everything is on disk that will be. */
  whenSaved(): Promise<void>;
  /** Files that were not taken when the gateway started, and writes that failed. */
  readonly errors: readonly string[];
}

/** A file beyond this is not ours. */
const MAX_FILE_BYTES = 32 * 1024 * 1024;
const FORMAT_VERSION = 1;
const MAX_ERRORS = 20;

/** Without a folder, in memory only. */
export async function openModelLists(dir?: string): Promise<ModelLists> {
  const lists = new PersistedModelLists(dir);
  await lists.load();
  return lists;
}

/** In memory only, and at once. */
export const createInMemoryModelLists = (): ModelLists => new PersistedModelLists(undefined);

class PersistedModelLists implements ModelLists {
  version = 0;
  readonly errors: string[] = [];
  readonly #lists = new Map<string, readonly ModelList[]>();
  readonly #changeListeners = new Set<(provider: string) => void>();
  readonly #refreshListeners = new Set<(provider: string) => void>();
  readonly #writing = new Map<string, Promise<void>>();
  readonly #dirty = new Set<string>();
  readonly #dir: string | undefined;

  constructor(dir: string | undefined) {
    this.#dir = dir;
  }

  of(provider: string): readonly ModelList[] | undefined {
    return this.#lists.get(provider);
  }

  providers(): readonly string[] {
    return [...this.#lists.keys()];
  }

  update(provider: string, credential: string, models: unknown, at: number): boolean {
    const list: ModelList = { credential, at, models: parseModelList(models) };
    const before = this.#lists.get(provider) ?? [];
    const old = before.find((h) => h.credential === credential);
    const changed = !old || JSON.stringify(old.models) !== JSON.stringify(list.models);
    this.#lists.set(provider, old ? before.map((h) => (h === old ? list : h)) : [...before, list]);
    this.#notify(provider, changed);
    return changed;
  }

  retainCredentials(provider: string, credentials: readonly string[]): void {
    const before = this.#lists.get(provider);
    const after = before?.filter((h) => credentials.includes(h.credential));
    if (!before || !after || after.length === before.length) return;
    if (after.length > 0) this.#lists.set(provider, after);
    else this.#lists.delete(provider);
    this.#notify(provider, true);
  }

  onChange(tell: (provider: string) => void): () => void {
    this.#changeListeners.add(tell);
    return () => this.#changeListeners.delete(tell);
  }

  onRefresh(listener: (provider: string) => void): () => void {
    this.#refreshListeners.add(listener);
    return () => this.#refreshListeners.delete(listener);
  }

  async whenSaved(): Promise<void> {
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
        if ((await stat(path)).size > MAX_FILE_BYTES) throw new Error("the file is too large");
        this.#restore(providerOfFile(name), JSON.parse(await readFile(path, "utf8")));
      } catch (error) {
        this.#reportError(`${name} was not taken: ${(error as Error).message}`);
      }
    }
  }

  #restore(provider: string, kept: { format?: unknown; lists?: unknown } | null): void {
    if (kept?.format !== FORMAT_VERSION || !Array.isArray(kept.lists))
      throw new Error("it is not a list of models that this version wrote");
    const restored = kept.lists.map((list: Record<string, unknown> | null): ModelList => {
      const { credential, at, models } = list ?? {};
      if (typeof credential !== "string" || typeof at !== "number" || !Number.isFinite(at))
        throw new Error("it does not say whose list it is, or from when");
      return { credential, at: Math.min(at, wallClock()), models: parseModelList(models) };
    });
    if (restored.length > 0) this.#lists.set(provider, restored);
  }

  #notify(provider: string, changed: boolean): void {
    if (changed) this.version++;
    const listeners = changed
      ? [...this.#changeListeners, ...this.#refreshListeners]
      : this.#refreshListeners;
    for (const tell of listeners) tell(provider);
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
        this.#reportError(`${provider}: the list could not be kept on disk: ${error.message}`),
      )
      .finally(() => this.#writing.delete(provider));
    this.#writing.set(provider, writing);
  }

  async #write(provider: string): Promise<void> {
    const path = join(this.#dir!, fileNameOf(provider));
    const lists = this.#lists.get(provider);
    if (!lists) return rm(path, { force: true });
    // Never in place: a reader, or a crash, sees the old file or the new one.
    const half = `${path}.${process.pid}.tmp`;
    const file = await open(half, "w", 0o600);
    try {
      await file.writeFile(JSON.stringify({ format: FORMAT_VERSION, lists }));
      await file.sync();
    } finally {
      await file.close();
    }
    return rename(half, path);
  }

  #reportError(words: string): void {
    this.errors.push(words);
    if (this.errors.length > MAX_ERRORS) this.errors.shift();
  }
}

/** A provider's name is the operator's; a file's name must not lead anywhere. */
const fileNameOf = (provider: string): string =>
  `${encodeURIComponent(provider).replaceAll(".", "%2E")}.json`;
const providerOfFile = (file: string): string => decodeURIComponent(file.slice(0, -".json".length));
