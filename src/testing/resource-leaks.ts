import { AsyncLocalStorage, createHook } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";

/** What stays until it is ended: timers that repeat, sockets, servers, watchers, workers, children. */
const LONG_LIVED_RESOURCES =
  /^(Timeout|TCPWRAP|TCPSERVERWRAP|TCPSocketWrap|PIPEWRAP|PIPESERVERWRAP|UDPWRAP|TTYWRAP|TLSWRAP|FSEVENTWRAP|STATWATCHER|PROCESSWRAP|WORKER|MESSAGEPORT|SIGNALWRAP|HTTPINCOMINGMESSAGE|FILEHANDLE|DIRHANDLE)$/;

/**
 * Whose resource it is, is told by where it was made, not by counting before and after: a test runner and its neighbours
 * open and close handles all the time. What the kit does for a plugin runs outside.
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

/** Sees which timers, sockets and servers were made by the work that it runs, and which of them are still there. */
export interface ResourceWatch {
  /** Runs something whose resources count. */
  run<T>(work: () => T): T;
  /** Kinds of what is still held, after it had a moment to go: what ends often ends in the next turn. */
  openResources(patienceMs?: number): Promise<string[]>;
  stop(): void;
}

/** Begins to watch. The caller calls `stop()` at the end, or the process goes on to look at every resource. */
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

/** The kit's own work, which is no leak. */
export const untracked = <T>(work: () => T): T => trackedResources.exit(work);
