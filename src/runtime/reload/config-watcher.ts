// Detects changes of the config files. The watcher observes folders, because editors and
// orchestrators replace files. It compares contents, because a new modification time alone is not a
// change. Slow polling detects changes that cause no events: changes on network file systems, and
// in files that the last reload added.
import { watch, type FSWatcher } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { LoadedConfig } from "../../config/load-config.ts";
import { readContentHash, hashContent } from "../../lib/content-hash.ts";
import type { Log } from "../../lib/log/log.ts";

export interface WatchOptions {
  /** Returns the files to watch. Called at every check, because a reload may change the list. */
  readonly listFiles: () => readonly string[];
  /**
   * Returns the hash of a file as the config was loaded from it. A change between that time and the
   * first check is detected too.
   */
  readonly hashOf: (file: string) => string | undefined;
  /** Called once per group of changes. The next call waits until it resolves. */
  readonly onChange: () => unknown;
  /** Called once for a folder that cannot be watched. The files in that folder are only polled. */
  readonly onError: (error: unknown) => void;
  /**
   * How long files must be unchanged before a change is reported, in milliseconds. A change is
   * reported after at most twice this time.
   */
  readonly debounceMs?: number;
  readonly pollMs?: number;
}

/** Watches the files of the current config. */
export const watchConfig = (
  current: () => Pick<LoadedConfig, "sources" | "texts" | "codeFiles">,
  changed: () => unknown,
  log: Log,
): AsyncDisposable =>
  watchFiles({
    listFiles: () => current().sources,
    hashOf(file) {
      const { texts, codeFiles } = current();
      const text = texts.get(file);
      return text === undefined ? codeFiles.get(file) : hashContent(text);
    },
    onChange: changed,
    onError: (error) => log.error({ err: error }, "config watch failed"),
  });

export function watchFiles(options: WatchOptions): AsyncDisposable {
  const { debounceMs = 40, pollMs = 2_000 } = options;
  const folders = new Map<string, { inode: number; watcher: FSWatcher | undefined }>();
  let known: ReadonlyMap<string, string> = new Map();
  let quiet: NodeJS.Timeout | undefined;
  let firstMove: number | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  let isClosed = false;

  const moved = () => {
    if (isClosed) return;
    const now = performance.now();
    firstMove ??= now;
    clearTimeout(quiet);
    quiet = setTimeout(look, Math.max(0, Math.min(debounceMs, firstMove + 2 * debounceMs - now)));
  };

  /** Runs one check at a time. A request during a check causes one more. */
  const look = () => {
    firstMove = undefined;
    again = running !== undefined;
    running ??= compare()
      .catch(options.onError)
      .finally(() => {
        running = undefined;
        if (again && !isClosed) look();
      });
  };

  async function compare(): Promise<void> {
    const seenHashes = new Map<string, string>();
    const places = new Map<string, number>();
    for (const file of options.listFiles()) {
      // A symbolic link can be replaced in its own folder, and its target can be edited in another
      // folder.
      for (const at of [file, await realpath(file).catch(() => file)])
        places.set(dirname(at), (await stat(dirname(at)).catch(() => undefined))?.ino ?? 0);
      seenHashes.set(file, await readContentHash(file));
    }
    if (isClosed) return;
    follow(places);
    const before = known;
    known = seenHashes;
    const changed = [...seenHashes].some(
      ([file, hash]) => (before.get(file) ?? options.hashOf(file) ?? hash) !== hash,
    );
    if (changed) await options.onChange();
  }

  /** A folder that was recreated under the same name needs a new watcher. */
  function follow(places: ReadonlyMap<string, number>): void {
    for (const [folder, { inode, watcher }] of folders) {
      if (places.get(folder) === inode) continue;
      watcher?.close();
      if (!places.has(folder)) folders.delete(folder);
    }
    for (const [folder, inode] of places) {
      const before = folders.get(folder);
      if (before?.inode === inode) continue;
      const entry = { inode, watcher: undefined as FSWatcher | undefined };
      folders.set(folder, entry);
      try {
        const watcher = (entry.watcher = watch(folder, { persistent: false }, moved));
        watcher.on("error", (error) => {
          watcher.close();
          options.onError(error);
        });
      } catch (error) {
        options.onError(error);
      }
    }
  }

  const slow = setInterval(look, pollMs).unref();
  look();
  return {
    async [Symbol.asyncDispose]() {
      isClosed = true;
      clearTimeout(quiet);
      clearInterval(slow);
      for (const { watcher } of folders.values()) watcher?.close();
      await running;
    },
  };
}
