// A backup becomes a state folder. Everything is looked through before anything is where a gateway would find it; what fails leaves the
// folder as empty as it was.
import { createHash, randomBytes } from "node:crypto";
import { chmod, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { GatewayConfig } from "../../config/types.ts";
import type { Log } from "../../lib/log.ts";
import { readTar } from "../../lib/tar.ts";
import { fail } from "../../model/error.ts";
import type { LedgerCopy } from "../../plugin/keeping.ts";
import { makeStateFolder } from "../services/state-folder.ts";
import { openStore } from "../services/store.ts";
import { cannot } from "./cannot.ts";
import { idleStore } from "./idle-store.ts";
import {
  type BackupFile,
  type BackupManifest,
  LEDGER,
  MANIFEST,
  OTHERS,
  readManifest,
  sumsOf,
} from "./manifest.ts";

export interface Restored {
  readonly stateDir: string;
  readonly manifest: BackupManifest;
  /** Texts that were taken out again. */
  readonly erased: number;
}

export async function restoreBackup(
  config: Pick<GatewayConfig, "store" | "file" | "stateDir">,
  of: {
    readonly log: Log;
    readonly backup: AsyncIterable<Uint8Array>;
    /** What was erased since the backup was made. */
    readonly erased: readonly string[];
  },
): Promise<Restored> {
  const { stateDir } = config;
  await mustBeEmpty(stateDir);
  await makeStateFolder(stateDir);
  const { store, context, scope } = await idleStore(config, of.log);
  try {
    const folder = join(stateDir, `restore-${randomBytes(6).toString("hex")}`);
    const manifest = await unpacked(of.backup, folder);
    const { keeping } = store;
    const restore =
      keeping?.restore ?? cannot(config.store.use, "takes a copy back", keeping?.instead?.restore);
    if (manifest.store !== config.store.use)
      fail(
        "conflict",
        `It is a copy of the store "${manifest.store}", and gateway.yaml has "${config.store.use}".`,
        {
          code: "other_store",
        },
      );
    mustAgree(manifest, await restore(join(folder, LEDGER)));
    for (const { name } of manifest.files) if (name !== LEDGER) await moved(name, folder, stateDir);
    await rm(folder, { recursive: true, force: true });
    let erased = 0;
    if (of.erased.length > 0) {
      const { keeping } = await openStore(config, context, scope, { version: "" });
      const erase = keeping?.erase ?? cannot(config.store.use, "erases");
      erased = (await erase({ values: of.erased })).values.length;
    }
    await scope[Symbol.asyncDispose]();
    return { stateDir, manifest, erased };
  } catch (error) {
    await scope[Symbol.asyncDispose]().catch(() => {});
    for (const name of await readdir(stateDir))
      await rm(join(stateDir, name), { recursive: true, force: true });
    throw error;
  }
}

async function mustBeEmpty(stateDir: string): Promise<void> {
  const there = await readdir(stateDir).catch((error: NodeJS.ErrnoException) =>
    error.code === "ENOENT" ? [] : Promise.reject(error),
  );
  if (there.length > 0)
    fail("conflict", `${stateDir} is not empty. Move it away first: a restore replaces nothing.`, {
      code: "not_empty",
    });
}

/** All files of a backup, each as its manifest says. */
async function unpacked(
  backup: AsyncIterable<Uint8Array>,
  folder: string,
): Promise<BackupManifest> {
  const found: BackupFile[] = [];
  try {
    for await (const { name, bytes } of readTar(backup)) {
      if (name !== LEDGER && name !== MANIFEST && !OTHERS.test(name))
        fail("invalid", `A backup has no file "${name}".`, { code: "no_backup" });
      found.push(await kept(name, bytes, folder));
    }
  } catch (error) {
    fail("invalid", `The backup cannot be read: ${(error as Error).message}`, {
      code: "no_backup",
      cause: error,
    });
  }
  const text = await readFile(join(folder, MANIFEST), "utf8").catch(() => "");
  const manifest = readManifest(text);
  const said = JSON.stringify(manifest.files);
  if (JSON.stringify(found.filter(({ name }) => name !== MANIFEST)) !== said)
    fail("invalid", "The backup's files are not what its manifest says.", {
      code: "not_as_written",
    });
  return manifest;
}

async function kept(
  name: string,
  chunks: AsyncIterable<Buffer>,
  folder: string,
): Promise<BackupFile> {
  const path = join(folder, name);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, "wx", 0o600);
  const digest = createHash("sha256");
  let bytes = 0;
  try {
    for await (const chunk of chunks) {
      bytes += chunk.length;
      digest.update(chunk);
      await file.writeFile(chunk);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return { name, bytes, sha256: digest.digest("hex") };
}

/** What the store has found in its copy, and what was written down of it. */
function mustAgree({ head, sums }: BackupManifest, found: LedgerCopy): void {
  const same =
    JSON.stringify(found.head ?? null) === JSON.stringify(head) &&
    JSON.stringify(sumsOf(found.total)) === JSON.stringify(sums);
  if (!same)
    fail("invalid", "The copy of the ledger is not the one that the manifest speaks of.", {
      code: "not_as_written",
    });
}

async function moved(name: string, from: string, to: string): Promise<void> {
  await mkdir(dirname(join(to, name)), { recursive: true, mode: 0o700 });
  await rename(join(from, name), join(to, name));
  await chmod(join(to, name), 0o600);
}
