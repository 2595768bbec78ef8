// Writes all data that a gateway stores into one file: a copy of the store, the key that signs URLs,
// and the last valid model lists. The gateway serves requests in the meantime.
import { createHash, randomBytes } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { open, readdir, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { TAR_END, createTarHeader, tarPadding } from "../../lib/tar.ts";
import { fail } from "../../model/error.ts";
import type { Store } from "../../plugin/store/store.ts";
import { failUnsupported } from "./unsupported.ts";
import type { LedgerBackup } from "../../plugin/store/ledger-maintenance.ts";

export interface BackupRequest {
  readonly store: Pick<Store, "maintenance" | "jobs" | "listKeys">;
  /** Plugin name of the store in gateway.yaml. */
  readonly use: string;
  readonly stateDir: string;
  readonly version: string;
}

export interface BackupResult {
  readonly file: string;
  readonly bytes: number;
  readonly ms: number;
  readonly manifest: BackupManifest;
}

/**
 * Creates a backup.
 * @param file Absolute path of a file that does not exist.
 */
export async function createBackup(of: BackupRequest, file: string): Promise<BackupResult> {
  const began = performance.now();
  const { maintenance } = of.store;
  const copied =
    maintenance?.backup ?? failUnsupported(of.use, "backups", maintenance?.alternatives?.backup);
  if (existsSync(file)) fail("conflict", `${file} already exists.`, { code: "file_exists" });
  const copy = join(of.stateDir, `backup-${randomBytes(6).toString("hex")}.tmp`);
  const half = `${file}.half`;
  try {
    await createNewFile(copy).then((handle) => handle.close());
    const { head = null, total, erasedHashes } = await copied(copy);
    const tar = new TarWriter(await createNewFile(half));
    try {
      await tar.add(LEDGER_NAME, copy);
      for (const name of await listOtherFiles(of.stateDir))
        await tar.add(name, join(of.stateDir, name));
      const manifest: BackupManifest = {
        kind: "tollgate backup",
        version: 1,
        tollgate: of.version,
        at: wallClock(),
        store: of.use,
        head,
        sums: toManifestSums(total),
        erased: erasedHashes,
        files: tar.files,
      };
      const bytes = await tar.end(`${JSON.stringify(manifest, null, 2)}\n`);
      await rename(half, file);
      return { file, bytes, ms: Math.round(performance.now() - began), manifest };
    } finally {
      await tar.close();
    }
  } finally {
    await Promise.all([copy, half].map((path) => rm(path, { force: true })));
  }
}

async function createNewFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, "wx", 0o600);
  } catch (error) {
    return fail("conflict", `Cannot write ${path}: ${(error as Error).message}`, {
      code: "not_writable",
      cause: error,
    });
  }
}

async function listOtherFiles(stateDir: string): Promise<string[]> {
  const lists = await readdir(join(stateDir, "catalog")).catch(() => []);
  const names = ["files/key", ...lists.map((name) => `catalog/${name}`)];
  return names.filter((name) => OTHER_FILES.test(name) && existsSync(join(stateDir, name)));
}

class TarWriter {
  readonly files: BackupFile[] = [];
  readonly #to: FileHandle;
  #bytes = 0;
  #closed = false;

  constructor(to: FileHandle) {
    this.#to = to;
  }

  async add(name: string, path: string): Promise<void> {
    const { size, mtimeMs } = await stat(path);
    await this.#write(createTarHeader(name, size, mtimeMs));
    const digest = createHash("sha256");
    let bytes = 0;
    // If the file grows in the meantime, only the size in its header is written.
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
      const some = (chunk as Buffer).subarray(0, size - bytes);
      bytes += some.length;
      digest.update(some);
      await this.#write(some);
    }
    if (bytes !== size) throw new Error(`${path} changed while it was copied.`);
    await this.#write(tarPadding(size));
    this.files.push({ name, bytes, sha256: digest.digest("hex") });
  }

  /** Finishes the file. Resolves with the total size in bytes when the file is durable. */
  async end(manifest: string): Promise<number> {
    const text = Buffer.from(manifest);
    await this.#write(createTarHeader(MANIFEST_NAME, text.length, wallClock()));
    await this.#write(text);
    await this.#write(tarPadding(text.length));
    await this.#write(TAR_END);
    await this.#to.sync();
    await this.close();
    return this.#bytes;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#to.close();
  }

  async #write(bytes: Buffer): Promise<void> {
    this.#bytes += bytes.length;
    for (let at = 0; at < bytes.length;)
      at += (await this.#to.write(bytes, at, bytes.length - at)).bytesWritten;
  }
}

// Describes a backup. The manifest is the last file in it, so that the other files are read only
// once.

export interface BackupManifest {
  readonly kind: "tollgate backup";
  readonly version: 1;
  /** Tollgate version that created it, and when. */
  readonly tollgate: string;
  readonly at: number;
  /** Plugin name of the store in gateway.yaml. Another type of store cannot read the backup. */
  readonly store: string;
  /** The newest row of the ledger. */
  readonly head: LedgerBackup["head"] | null;
  readonly sums: Omit<LedgerBackup["total"], "costNano"> & { readonly costNano: string };
  /**
   * Texts that were erased before the backup. Older backups still contain them, and `restore
   * --erased-in` removes them.
   */
  readonly erased: readonly string[];
  readonly files: readonly BackupFile[];
}
export interface BackupFile {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

export const MANIFEST_NAME = "manifest.json";
export const LEDGER_NAME = "ledger";
/** Other files of the state directory that a backup contains. */
export const OTHER_FILES = /^(?:files\/key|catalog\/[\w.@-]{1,80})$/;

export const toManifestSums = ({ calls, usage, costNano, unpriced }: LedgerBackup["total"]) => ({
  calls,
  usage,
  costNano: String(costNano),
  unpriced,
});

export function parseManifest(text: string): BackupManifest {
  try {
    const parsed = JSON.parse(text) as BackupManifest;
    if (parsed.kind === "tollgate backup" && parsed.version === 1) return parsed;
  } catch {}
  return fail("invalid", "This version of Tollgate cannot read the backup.", {
    code: "no_backup",
  });
}
