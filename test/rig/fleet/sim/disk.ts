// A gateway's disk in memory. It outlives the gateway's process; it can be full.
import type { Disk, DiskFile } from "../../../../plugins/stores/postgres/disk.ts";

export class MemoryDisk implements Disk {
  readonly #files = new Map<string, string>();
  isFull = false;

  async makeFolder(): Promise<void> {}

  async append(path: string): Promise<DiskFile> {
    const files = this.#files;
    if (!files.has(path)) files.set(path, "");
    return {
      write: async (data) => {
        if (this.isFull)
          throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
        files.set(path, (files.get(path) ?? "") + data.toString());
      },
      datasync: async () => {},
      truncate: async (length) => void files.set(path, (files.get(path) ?? "").slice(0, length)),
      close: async () => {},
    };
  }

  async list(folder: string): Promise<readonly string[]> {
    const names = [...this.#files.keys()]
      .filter((path) => path.startsWith(`${folder}/`))
      .map((path) => path.slice(folder.length + 1).split("/")[0]!);
    return [...new Set(names)];
  }

  async read(path: string): Promise<string> {
    return this.#files.get(path) ?? "";
  }

  async remove(path: string): Promise<void> {
    for (const name of this.#files.keys())
      if (name === path || name.startsWith(`${path}/`)) this.#files.delete(name);
  }
}
