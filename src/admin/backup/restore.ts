// Restores a state directory from a backup. All files are verified before they are moved to their
// final location. If any step fails, the directory stays empty.
import { createHash, randomBytes } from "node:crypto";
import { chmod, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { Log } from "../../lib/log/log.ts";
import { readTar } from "../../lib/tar.ts";
import { fail } from "../../model/error.ts";
import type { LedgerBackup } from "../../plugin/store/ledger-maintenance.ts";
import { createStateDir } from "../../runtime/services/state-dir.ts";
import { openStore, setUpStore } from "../../runtime/ledger/open-store.ts";
import { failUnsupported } from "./unsupported.ts";
import {
  type BackupFile,
  type BackupManifest,
  LEDGER_NAME,
  MANIFEST_NAME,
  OTHER_FILES,
  parseManifest,
  toManifestSums,
} from "./backup.ts";
import { LifetimeScope, SharedResources } from "../../lib/lifetime-scope.ts";
import type { Store } from "../../plugin/store/store.ts";
import { createPluginPeers } from "../../runtime/services/peer-gateways.ts";
import type { ContextServices } from "../../runtime/services.ts";

export interface RestoreResult {
  readonly stateDir: string;
  readonly manifest: BackupManifest;
  /** Number of texts that were erased again. */
  readonly erased: number;
}

export async function restoreBackup(
  config: Pick<GatewayConfig, "store" | "file" | "bounds" | "stateDir">,
  of: {
    readonly log: Log;
    readonly backup: AsyncIterable<Uint8Array>;
    /** Texts that were erased since the backup was made. */
    readonly erased: readonly string[];
  },
): Promise<RestoreResult> {
  const { stateDir } = config;
  await assertStateDirEmpty(stateDir);
  await createStateDir(stateDir);
  const { store, context, scope } = await createClosedStore(config, of.log);
  try {
    const folder = join(stateDir, `restore-${randomBytes(6).toString("hex")}`);
    const manifest = await unpackBackup(of.backup, folder);
    const { maintenance } = store;
    const restore =
      maintenance?.restore ??
      failUnsupported(config.store.use, "restoring a backup", maintenance?.alternatives?.restore);
    if (manifest.store !== config.store.use)
      fail(
        "conflict",
        `The backup is of the store "${manifest.store}", but gateway.yaml uses "${config.store.use}".`,
        {
          code: "other_store",
        },
      );
    assertMatchesManifest(manifest, await restore(join(folder, LEDGER_NAME)));
    for (const { name } of manifest.files)
      if (name !== LEDGER_NAME) await moveIntoPlace(name, folder, stateDir);
    await rm(folder, { recursive: true, force: true });
    let erased = 0;
    if (of.erased.length > 0) {
      const { maintenance: keeping } = await openStore(config, context, scope, { version: "" });
      const erase = keeping?.erase ?? failUnsupported(config.store.use, "erasing personal data");
      erased = (await erase({ hashes: of.erased })).hashes.length;
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

async function assertStateDirEmpty(stateDir: string): Promise<void> {
  const there = await readdir(stateDir).catch((error: NodeJS.ErrnoException) =>
    error.code === "ENOENT" ? [] : Promise.reject(error),
  );
  if (there.length > 0)
    fail(
      "conflict",
      `${stateDir} is not empty. Move it away first: a restore does not overwrite files.`,
      {
        code: "not_empty",
      },
    );
}

/** Unpacks all files of a backup and checks them against its manifest. */
async function unpackBackup(
  backup: AsyncIterable<Uint8Array>,
  folder: string,
): Promise<BackupManifest> {
  const found: BackupFile[] = [];
  try {
    for await (const { name, bytes } of readTar(backup)) {
      if (name !== LEDGER_NAME && name !== MANIFEST_NAME && !OTHER_FILES.test(name))
        fail("invalid", `Unknown file "${name}" in the backup.`, { code: "no_backup" });
      found.push(await extractFile(name, bytes, folder));
    }
  } catch (error) {
    fail("invalid", `Cannot read the backup: ${(error as Error).message}`, {
      code: "no_backup",
      cause: error,
    });
  }
  const text = await readFile(join(folder, MANIFEST_NAME), "utf8").catch(() => "");
  const manifest = parseManifest(text);
  const expectedFiles = JSON.stringify(manifest.files);
  if (JSON.stringify(found.filter(({ name }) => name !== MANIFEST_NAME)) !== expectedFiles)
    fail("invalid", "The backup's files do not match its manifest.", {
      code: "not_as_written",
    });
  return manifest;
}

async function extractFile(
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

/** Throws if the content that the store found in its copy differs from the manifest. */
function assertMatchesManifest({ head, sums }: BackupManifest, found: LedgerBackup): void {
  const same =
    JSON.stringify(found.head ?? null) === JSON.stringify(head) &&
    JSON.stringify(toManifestSums(found.total)) === JSON.stringify(sums);
  if (!same)
    fail("invalid", "The ledger in the backup does not match the manifest.", {
      code: "not_as_written",
    });
}

async function moveIntoPlace(name: string, from: string, to: string): Promise<void> {
  await mkdir(dirname(join(to, name)), { recursive: true, mode: 0o700 });
  await rename(join(from, name), join(to, name));
  await chmod(join(to, name), 0o600);
}

// Creates a store without opening it, so that it can restore a backup or read an archive.

/** Returns the store with its scope, which closes it. */
export async function createClosedStore(
  config: Pick<GatewayConfig, "store" | "file" | "bounds" | "stateDir">,
  log: Log,
): Promise<{ store: Store; context: ContextServices; scope: LifetimeScope } & AsyncDisposable> {
  const scope = new LifetimeScope();
  const context: ContextServices = {
    log,
    shared: new SharedResources(),
    pluginPeers: createPluginPeers(),
    localEndpoint: () => fail("unavailable", "No gateway is running."),
    stats: async () => fail("unavailable", "No gateway is running."),
    stateDir: config.stateDir,
    env: process.env,
  };
  const store = await setUpStore(config, context, scope);
  return { store, context, scope, [Symbol.asyncDispose]: () => scope[Symbol.asyncDispose]() };
}
