import { AsyncLocalStorage, createHook } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Resources that exist until they are closed: repeating timers, sockets, servers, watchers,
 * workers, and child processes.
 */
const LONG_LIVED_RESOURCES =
  /^(Timeout|TCPWRAP|TCPSERVERWRAP|TCPSocketWrap|PIPEWRAP|PIPESERVERWRAP|UDPWRAP|TTYWRAP|TLSWRAP|FSEVENTWRAP|STATWATCHER|PROCESSWRAP|WORKER|MESSAGEPORT|SIGNALWRAP|HTTPINCOMINGMESSAGE|FILEHANDLE|DIRHANDLE)$/;

/**
 * Resources by the code that created them. Counting handles before and after is not reliable,
 * because the test runner and other tests open and close handles all the time. Work that the kit
 * does for a plugin runs outside of this storage.
 */
const trackedResources = new AsyncLocalStorage<Set<number>>();
const kinds = new Map<number, string>();
const hook = createHook({
  init(id, type) {
    const mine = trackedResources.getStore();
    if (!mine || !LONG_LIVED_RESOURCES.test(type)) return;
    mine.add(id);
    kinds.set(id, type);
  },
  destroy(id) {
    kinds.delete(id);
  },
});
let watchers = 0;

/**
 * Tracks the timers, sockets, and servers that a piece of work created, and which of them still
 * exist.
 */
export interface ResourceWatch {
  /** Runs work whose resources are tracked. */
  run<T>(work: () => T): T;
  /**
   * Returns the types of the resources that still exist, after waiting up to `patienceMs`. Many
   * resources are closed in the next turn of the event loop.
   */
  openResources(patienceMs?: number): Promise<string[]>;
  stop(): void;
}

/**
 * Starts tracking. Call `stop()` at the end. If it is not called, the process continues to track
 * every resource.
 */
export function watchResources(): ResourceWatch {
  const mine = new Set<number>();
  if (watchers++ === 0) hook.enable();
  const now = () => [...mine].flatMap((id) => kinds.get(id) ?? []);
  return {
    run: (work) => trackedResources.run(mine, work),
    async openResources(patienceMs = 500) {
      for (const end = performance.now() + patienceMs; performance.now() < end && now().length > 0;)
        await untracked(() => sleep(5));
      return now().map((kind) => kind.replace(/WRAP$/, "").toLowerCase());
    },
    stop() {
      if (--watchers === 0) hook.disable();
      for (const id of mine) kinds.delete(id);
    },
  };
}

/** Runs work of the kit itself, so that its resources do not count as leaks of the plugin. */
export const untracked = <T>(work: () => T): T => trackedResources.exit(work);
