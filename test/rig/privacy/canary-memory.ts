// The memory of a gateway that has served its requests: its live strings as a heap snapshot, the
// report that Node writes on a crash, and all memory of each isolated plugin, garbage included.
import { mkdtemp, open, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../kit/wait.ts";

/** Maximum size of one read, in bytes. */
const PIECE = 8 * 1024 * 1024;

export interface MemoryReader extends AsyncDisposable {
  /** Variables with which the gateway starts. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of the kinds of memory that contain one of the words, of those that could be read. */
  search(pid: number, words: readonly string[]): Promise<{ found: string[]; read: string[] }>;
}

export async function createMemoryReader(): Promise<MemoryReader> {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-memory-"));
  const options = [
    "--heapsnapshot-signal=SIGVTALRM",
    "--report-on-signal",
    "--report-signal=SIGIO",
    `--diagnostic-dir=${dir}`,
    `--report-directory=${dir}`,
  ];
  const written = async (signal: NodeJS.Signals, pid: number, ending: string) => {
    process.kill(pid, signal);
    let file: string | undefined;
    await until(async () => {
      file = (await readdir(dir)).find((name) => name.endsWith(ending));
      return file !== undefined && isWhole(await readFile(join(dir, file)));
    });
    return readFile(join(dir, file!));
  };
  return {
    env: { NODE_OPTIONS: options.join(" ") },
    async search(pid, words) {
      const found: string[] = [];
      const read: string[] = [];
      const look = (where: string, bytes: Buffer) => {
        read.push(where);
        if (words.some((word) => bytes.includes(word))) found.push(where);
      };
      look("heap snapshot", await written("SIGVTALRM", pid, ".heapsnapshot"));
      look("crash report", await written("SIGIO", pid, ".json"));
      for (const child of await childrenOf(pid))
        for await (const piece of memoryOf(child)) look("isolated plugin", piece);
      return { found: [...new Set(found)], read: [...new Set(read)] };
    },
    async [Symbol.asyncDispose]() {
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Both files are JSON objects. */
const isWhole = (bytes: Buffer): boolean => bytes.subarray(-8).toString().trimEnd().endsWith("}");

/** Linux only. */
async function childrenOf(pid: number): Promise<number[]> {
  if (process.platform !== "linux") return [];
  const threads = await readdir(`/proc/${pid}/task`);
  const lists = await Promise.all(
    threads.map((thread) =>
      readFile(`/proc/${pid}/task/${thread}/children`, "utf8").catch(() => ""),
    ),
  );
  return lists.flatMap((list) => list.split(" ").filter(Boolean).map(Number));
}

/** Yields all readable memory of a process. Pieces overlap, so that no word is cut. */
async function* memoryOf(pid: number): AsyncGenerator<Buffer> {
  const maps = await readFile(`/proc/${pid}/maps`, "utf8");
  await using memory = await open(`/proc/${pid}/mem`);
  for (const [, from, to] of maps.matchAll(/^([\da-f]+)-([\da-f]+) rw/gm)) {
    const [start, end] = [Number.parseInt(from!, 16), Number.parseInt(to!, 16)];
    for (let at = start; at < end; at += PIECE - 1024) {
      const piece = Buffer.alloc(Math.min(PIECE, end - at));
      try {
        const { bytesRead } = await memory.read(piece, 0, piece.length, at);
        yield piece.subarray(0, bytesRead);
      } catch {
        // Not mapped any more.
      }
    }
  }
}
