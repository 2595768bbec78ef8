// A store in memory that records how it is read and written, for tests of the work that requests
// cause. A test can stop the engines of jobs, so that only its requests use the store.
import { defineStore, type Context, type Store } from "tollgate/plugin";
import memory from "../../plugins/stores/memory.ts";

export interface StoreCalls {
  /** Each call: its method, and how many items it returned. */
  readonly calls: string[];
  /** Whether no job is due. Engines then find nothing to do. */
  isFrozen: boolean;
}

const shared = globalThis as { tollgateStoreCalls?: StoreCalls };

export const storeCalls = (): StoreCalls =>
  (shared.tollgateStoreCalls ??= { calls: [], isFrozen: false });

/** Methods with which engines wait for their next work. */
const WAITING = new Set(["lease", "nextDueAt"]);

const countOf = (result: unknown): number => {
  if (result === undefined) return 0;
  const items = (result as { items?: unknown } | null)?.items ?? result;
  return Array.isArray(items) ? items.length : 1;
};

function counted<T extends object>(of: T, prefix = ""): T {
  const log = storeCalls();
  return new Proxy(of, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value === "object" && value !== null)
        return counted(value, `${prefix}${String(name)}.`);
      if (typeof value !== "function") return value;
      return async (...args: unknown[]) => {
        if (log.isFrozen && WAITING.has(String(name))) return name === "lease" ? [] : undefined;
        const result: unknown = await value.apply(target, args);
        log.calls.push(`${prefix}${String(name)}: ${countOf(result)}`);
        return result;
      };
    },
  });
}

export default defineStore({
  api: 1,
  name: "counted",
  summary: "Record reads and writes",
  isVolatile: true,
  setup: async (_, ctx) =>
    counted(await memory.setup({ keep: 200_000 }, ctx as unknown as Context as never)) as Store,
});
