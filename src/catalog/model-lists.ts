// Live model lists: the models that each credential may call, as the provider last reported them.
// The lists are kept across config generations and, on disk, across processes, so models stay
// available if an upstream is not.
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { wallClock } from "../lib/time/wall-clock.ts";
import type { ModelInfo } from "../model/facts.ts";
import { fail } from "../model/error.ts";
import { UNITS } from "../model/usage.ts";
import { parseDecimal } from "../money/decimal.ts";

/** The model list of one credential. */
export interface ModelList {
  readonly credential: string;
  /** Unix milliseconds when upstream last reported the list. */
  readonly at: number;
  readonly models: readonly ModelInfo[];
}

export interface ModelLists {
  /** Increases whenever a list changes. */
  readonly version: number;
  /**
   * Returns a provider's lists in the order in which their credentials first reported. Undefined:
   * no list was ever received.
   */
  of(provider: string): readonly ModelList[] | undefined;
  /** Returns the providers that have a list. */
  providers(): readonly string[];
  /**
   * Replaces a list. Throws and keeps the old list if the new list is invalid. Returns whether the
   * content changed.
   */
  update(provider: string, credential: string, models: unknown, at: number): boolean;
  /** Removes the lists of all other credentials. */
  retainCredentials(provider: string, credentials: readonly string[]): void;
  /**
   * Calls the listener with the provider's name after a change. Returns a function that unregisters
   * it.
   */
  onChange(tell: (provider: string) => void): () => void;
  /** Like `onChange`, but also calls the listener if only the list's time changed. */
  onRefresh(tell: (provider: string) => void): () => void;
  /** Resolves when all pending writes have finished. */
  whenSaved(): Promise<void>;
  /** Errors of files that were rejected at startup and of writes that failed. */
  readonly errors: readonly string[];
}

/** Maximum file size in bytes. The gateway does not write larger files. */
const MAX_FILE_BYTES = 32 * 1024 * 1024;
const FORMAT_VERSION = 1;
const MAX_ERRORS = 20;

/**
 * Opens the lists that are stored in a directory. Without a directory, lists are kept only in
 * memory.
 */
export async function openModelLists(dir?: string): Promise<ModelLists> {
  const lists = new PersistedModelLists(dir);
  await lists.load();
  return lists;
}

/** Creates lists that are kept only in memory, synchronously. */
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
      // Left over from a write that a crash interrupted.
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
        throw new Error("it does not contain its provider, its credential, or its date");
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

  /** One writer per provider. Changes that occur during a write are written afterwards. */
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
    // The file is never written in place, so a reader, even after a crash, finds either the old or
    // the new file.
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

/** A provider's name is set by the operator and must not be used as a path. */
const fileNameOf = (provider: string): string =>
  `${encodeURIComponent(provider).replaceAll(".", "%2E")}.json`;
const providerOfFile = (file: string): string => decodeURIComponent(file.slice(0, -".json".length));

/** Maximum number of models in a list. */
const MAX_MODELS = 20_000;
/**
 * Characters and length allowed after the slash of a model id. Models with a name that no request
 * could contain are omitted.
 */
const MODEL_NAME = /^[!#-~]{1,255}$/;
const DATE_PREFIX = /^\d{4}-\d\d-\d\d/;

/**
 * Validates a model list and keeps only known fields of the right type. Used for lists from
 * provider plugins and for lists stored on disk. One invalid entry rejects the whole list, so that
 * invalid data never replaces a good list.
 */
export function parseModelList(value: unknown): readonly ModelInfo[] {
  if (!Array.isArray(value)) return rejectList("it is not a list");
  if (value.length > MAX_MODELS)
    return rejectList(`it has ${value.length} entries, more than ${MAX_MODELS}`);
  const models = new Map<string, ModelInfo>();
  value.forEach((entry, i) => {
    const where = `entry ${i + 1}`;
    if (!isObject(entry)) return rejectList(`${where} is not an object`);
    const { model } = entry;
    if (typeof model !== "string" || model === "") return rejectList(`${where} has no model name`);
    if (MODEL_NAME.test(model) && !models.has(model)) models.set(model, parseModel(entry, model));
    return undefined;
  });
  return [...models.values()];
}

function parseModel(entry: Record<string, unknown>, model: string): ModelInfo {
  const info: Record<string, unknown> = { model };
  for (const [field, fits] of Object.entries(FIELD_CHECKS)) {
    const value = entry[field];
    if (value === undefined || value === null) continue;
    if (!fits(value)) return rejectList(`the ${field} of ${model} cannot be read`);
    info[field] = value;
  }
  if (info["operation"] === undefined) return rejectList(`${model} has no operation`);
  return info as unknown as ModelInfo;
}

type Check = (value: unknown) => boolean;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isText: Check = (v) => typeof v === "string" && v.length <= 1_000;
const isDateText: Check = (v) => typeof v === "string" && v.length <= 40 && DATE_PREFIX.test(v);
const isBoolean: Check = (v) => typeof v === "boolean";
const isCount: Check = (v) => typeof v === "number" && Number.isFinite(v) && v >= 0;
const isOneOf =
  (...words: readonly unknown[]): Check =>
  (v) =>
    words.includes(v);
const isListOf =
  (fits: Check): Check =>
  (v) =>
    Array.isArray(v) && v.length <= 1_000 && v.every(fits);
const isMapOf =
  (fits: Check): Check =>
  (v) =>
    isObject(v) &&
    Object.keys(v).length <= 1_000 &&
    Object.values(v).every((x) => x === undefined || fits(x));
const isShape =
  (fields: { readonly [field: string]: Check }, ...required: readonly string[]): Check =>
  (v) =>
    isObject(v) &&
    required.every((field) => v[field] !== undefined) &&
    Object.entries(v).every(([field, x]) => x === undefined || (fields[field]?.(x) ?? false));

/**
 * Whether a value is a non-negative decimal with at most `places` decimal places, so that costs are
 * exact.
 */
const isDecimal =
  (places: number): Check =>
  (v) => {
    if (typeof v !== "string" || v.length > 30) return false;
    try {
      return parseDecimal(v, places) >= 0n;
    } catch {
      return false;
    }
  };
const isLine = (places: number, per: number): Check =>
  isShape(
    {
      unit: isOneOf(...UNITS),
      usd: isDecimal(places),
      per: isOneOf(per),
      variant: isShape({ quality: isText, size: isText, first: isBoolean }),
    },
    "unit",
    "usd",
    "per",
  );
/** A rate is a whole number of pico-dollars per unit. */
const LINE_CHECKS = [isLine(12, 1), isLine(6, 1_000_000)];
const isPriceLine: Check = (v) => LINE_CHECKS.some((fits) => fits(v));
/** Maximum number of rows of a price, by date and hour. Rows are nested. */
const MAX_PRICE_ROWS = 32;
const isPriceRow: Check = isShape(
  {
    lines: isListOf(isPriceLine),
    over: isListOf(
      isShape(
        {
          input: isCount,
          lines: isListOf(isPriceLine),
          tiers: isMapOf(isListOf(isPriceLine)),
        },
        "input",
        "lines",
      ),
    ),
    tiers: isMapOf(isListOf(isPriceLine)),
    multipliers: isListOf(isShape({ when: isMapOf(isText), by: isDecimal(9) }, "when", "by")),
    from: isDateText,
    until: isDateText,
    hours: isShape({ from: isText, to: isText, days: isListOf(isCount) }, "from", "to"),
    otherwise: (v) => isPriceRow(v),
  },
  "lines",
);
const isPrice: Check = (v) => {
  let rows = 0;
  for (let row = v; isObject(row); row = row["otherwise"])
    if (++rows > MAX_PRICE_ROWS) return false;
  return isPriceRow(v);
};

/** Pattern of operation names. */
const OPERATION_NAME = /^[a-z][a-z0-9_-]{0,31}$/;

const FIELD_CHECKS: { readonly [field in Exclude<keyof ModelInfo, "model">]: Check } = {
  // The known operations depend on the mounted plugins.
  operation: (v) => typeof v === "string" && OPERATION_NAME.test(v),
  name: isText,
  description: isText,
  protocols: isListOf(isText),
  can: isMapOf(isBoolean),
  rejectedFields: isListOf(isText),
  price: isPrice,
  pricedAs: isText,
  dataPolicy: isObject,
  limits: isMapOf(isCount),
  image: isShape({
    sizes: isListOf(isText),
    sides: isShape({ min: isCount, max: isCount, step: isCount }, "min", "max"),
    qualities: isListOf(isText),
    formats: isListOf(isText),
  }),
  released: isDateText,
  retires: isDateText,
};

const rejectList = (why: string): never =>
  fail("upstream", `The list of models is not usable: ${why}.`, { code: "bad_model_list" });
