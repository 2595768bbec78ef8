// Commands for ledger maintenance: backups, archives, compaction, and erasure of personal data. The
// same commands work on the control socket of a running gateway and directly on the store. A
// command that the store does not support fails with an explanation.
import { existsSync } from "node:fs";
import { open, rm, stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { fail } from "../../model/error.ts";
import type {
  ArchiveInfo,
  ErasureRequest,
  PrunePlan,
  PruneResult,
} from "../../plugin/store/ledger-maintenance.ts";
import type { JobRecord } from "../../plugin/store/job.ts";
import type { Store } from "../../plugin/store/store.ts";
import { type BackupRequest, createBackup } from "../backup/backup.ts";
import { failUnsupported } from "../backup/unsupported.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import type { InputOf } from "../schema/command-specs.ts";

export interface ArchiveResult extends ArchiveInfo {
  readonly file: string;
  readonly bytes: number;
  readonly ms: number;
}

/** Result of a prune, or its plan. */
export interface PruneCommandResult {
  readonly plan: PrunePlan;
  readonly result:
    | (PruneResult & { readonly ms: number; readonly archive: ArchiveResult | undefined })
    | null;
}

/**
 * @param invalidateKeys Resolves when no process has a cached key left.
 */
export function createMaintenanceCommands(of: BackupRequest, invalidateKeys: () => Promise<void>) {
  const { store, use } = of;
  return withInputChecks({
    backup: ({ file }) => createBackup(of, assertAbsolute(file)),
    "ledger.archive": ({ file, before, labels }) =>
      archiveRows(of, assertAbsolute(file), before ?? Number.MAX_SAFE_INTEGER, labels ?? true),
    "ledger.status": async () => {
      const state = store.maintenance?.readState ?? failUnsupported(use, "size reports");
      return state();
    },
    "ledger.prune": (input) => pruneRows(of, input),
    erase: async (input) => {
      const erase =
        store.maintenance?.erase ??
        failUnsupported(use, "erasing personal data", store.maintenance?.alternatives?.erase);
      const request = toErasure(input);
      const jobs = "key" in request ? await listJobs(store, request.key) : [];
      const { hashes } = await erase(request);
      for (const { id, version } of jobs) await store.jobs!.delete(id, version);
      await invalidateKeys();
      return { texts: hashes.length, hashes };
    },
  });
}

/**
 * Returns the jobs of a key, such as its files. Deleting them makes their content unreadable. Throws
 * if one has an open reservation, which could not be settled any more.
 */
async function listJobs({ jobs }: Pick<Store, "jobs">, key: string): Promise<readonly JobRecord[]> {
  const found: JobRecord[] = [];
  for (let after: string | undefined; jobs;) {
    const page = await jobs.list({ key }, { limit: 1_000, after });
    found.push(...page.items);
    after = page.next ?? undefined;
    if (after === undefined) break;
  }
  const running = found.filter(({ attempt }) => attempt !== undefined).length;
  if (running > 0)
    fail("conflict", `The key has ${running} running jobs. Cancel them, or wait for their end.`, {
      code: "jobs_running",
    });
  return found;
}

/**
 * Throws for a relative path, because the gateway's working directory differs from the caller's.
 */
function assertAbsolute(file: string): string {
  return isAbsolute(file)
    ? file
    : fail("invalid", `/file: expected an absolute path, not "${file}".`, {
        code: "bad_input",
        param: "/file",
      });
}

async function archiveRows(
  { store, use }: BackupRequest,
  file: string,
  before: number,
  labels: boolean,
): Promise<ArchiveResult> {
  const archive = store.maintenance?.archive ?? failUnsupported(use, "archiving rows");
  if (existsSync(file)) fail("conflict", `${file} already exists.`, { code: "file_exists" });
  const began = performance.now();
  await open(file, "wx", 0o600).then(
    (handle) => handle.close(),
    (error: Error) =>
      fail("conflict", `Cannot write ${file}: ${error.message}`, { code: "not_writable" }),
  );
  try {
    const facts = await archive(file, { before, labels });
    const { size } = await stat(file);
    return { file, bytes: size, ms: Math.round(performance.now() - began), ...facts };
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  }
}

/** Minimum age of pruned rows, in milliseconds. Newer rows may still be settled or corrected. */
const MIN_AGE_MS = 86_400_000;

async function pruneRows(
  of: BackupRequest,
  { before, dryRun, archive }: InputOf<"ledger.prune">,
): Promise<PruneCommandResult> {
  const { planPrune, prune }: Partial<NonNullable<Store["maintenance"]>> =
    of.store.maintenance ?? {};
  if (!planPrune || !prune) return failUnsupported(of.use, "pruning rows");
  if (before > wallClock() - MIN_AGE_MS)
    fail("invalid", "/before: expected a time at least one day ago.", {
      code: "bad_input",
      param: "/before",
    });
  const found = await planPrune(before);
  if (dryRun === true) return { plan: found, result: null };
  const began = performance.now();
  const archiveResult =
    archive === undefined
      ? undefined
      : await archiveRows(of, assertAbsolute(archive), before, true);
  const done = await prune(before);
  return {
    plan: found,
    result: { ...done, ms: Math.round(performance.now() - began), archive: archiveResult },
  };
}

function toErasure({ label, key }: InputOf<"erase">): ErasureRequest {
  if ((label === undefined) === (key === undefined))
    return fail("invalid", "/label: expected either a label or a key, not both.", {
      code: "bad_input",
      param: "/label",
    });
  if (key !== undefined) return { key };
  const at = label!.indexOf("=");
  if (at < 1)
    return fail(
      "invalid",
      `/label: expected a name and a value, as in user=4711, not "${label}".`,
      {
        code: "bad_input",
        param: "/label",
      },
    );
  return { label: { name: label!.slice(0, at), value: label!.slice(at + 1) } };
}
