// Loaded into a gateway's process before its own code. It reports the memory of the main thread, and
// collects all garbage on request.
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { isMainThread } from "node:worker_threads";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Memory of a process in bytes. */
export interface ProcessMemory {
  readonly resident: number;
  /** Objects of the young generation with the space that it reserves, and of the old generation. */
  readonly young: number;
  readonly old: number;
  /** Buffers and other memory that objects refer to. */
  readonly external: number;
}

const SAMPLE_MS = 20;

function readMemory(): ProcessMemory {
  const { rss: resident, external } = process.memoryUsage();
  const sizeOf = (isYoung: boolean) =>
    getHeapSpaceStatistics()
      .filter(({ space_name: name }) => name.startsWith("new_") === isYoung)
      .reduce((sum, space) => sum + space.physical_space_size, 0);
  return { resident, young: sizeOf(true), old: sizeOf(false), external };
}

const maxOf = (a: ProcessMemory, b: ProcessMemory): ProcessMemory => ({
  resident: Math.max(a.resident, b.resident),
  young: Math.max(a.young, b.young),
  old: Math.max(a.old, b.old),
  external: Math.max(a.external, b.external),
});

function serve(path: string): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  let peak = readMemory();
  setInterval(() => (peak = maxOf(peak, readMemory())), SAMPLE_MS).unref();
  createServer((socket) => {
    socket.on("data", (text) => {
      if (String(text) === "collect") for (let n = 0; n < 4; n++) collect();
      const now = readMemory();
      socket.end(JSON.stringify({ now, peak: maxOf(peak, now) }));
      peak = now;
    });
    socket.on("error", () => {});
  })
    .listen(path)
    .unref();
}

const path = process.env["TOLLGATE_MEMORY_PROBE"];
if (path !== undefined && isMainThread) {
  // The program may execute itself again with other settings.
  rmSync(path, { force: true });
  serve(path);
}
