// The room that the file takes, with what SQLite keeps beside it, and what its disk has left.
import { stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { StoreSize } from "tollgate/plugin";

export async function readDiskUsage(file: string): Promise<Pick<StoreSize, "bytes" | "freeBytes">> {
  const sizes = ["", "-wal", "-shm", ".ballast"].map((ending) =>
    stat(`${file}${ending}`).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  const [disk, ...taken] = await Promise.all([statfs(dirname(file)), ...sizes]);
  return {
    bytes: taken.reduce((sum, size) => sum + size, 0),
    freeBytes: disk.bavail * disk.bsize,
  };
}
