// Commands for ledger maintenance: backups, archives, compaction, and erasure of personal data. The
// same commands work on the control socket of a running gateway and directly on the store. A
// command that the store does not support fails with an explanation.
import { existsSync } from "node:fs";
import { open, rm, stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { fail, getFault } from "../../model/error.ts";
import type {
  ArchiveInfo,
  ErasureRequest,
  LedgerMaintenance,
  PrunePlan,
  PruneResult,
} from "../../plugin/store/ledger-maintenance.ts";
import type { JobRecord, JobStore } from "../../plugin/store/job.ts";
import type { Store } from "../../plugin/store/store.ts";
import { listAllKeys } from "../../runtime/store-keys.ts";
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
      const erase = requireErase(store, use);
      const request = toErasure(input);
      const requests = "account" in request ? await expandAccount(store, request) : [request];
      const { jobs } = store;
      if (jobs) await eraseJobs(jobs, request, requests);
      const hashes = new Set<string>();
      try {
        for (const one of requests) for (const hash of (await erase(one)).hashes) hashes.add(hash);
        // Jobs that were created in between.
        if (jobs) await eraseJobs(jobs, request, requests);
      } finally {
        await invalidateKeys();
      }
      return { texts: hashes.size, hashes: [...hashes] };
    },
  });
}

/** Returns the method that erases personal data. Throws if the store has none. */
export const requireErase = (
  { maintenance }: Pick<Store, "maintenance">,
  use: string,
): NonNullable<LedgerMaintenance["erase"]> =>
  maintenance?.erase ??
  failUnsupported(use, "erasing personal data", maintenance?.alternatives?.erase);

/** Number of jobs per page. */
const PAGE_SIZE = 1_000;

/**
 * Deletes the jobs of a key or account, such as its files, which makes their content unreadable.
 * Throws before it deletes one if a job has an open reservation, which could not be settled any
 * more.
 *
 * @param requests Erasures that follow from the request, with the keys of an account.
 */
async function eraseJobs(
  jobs: JobStore,
  request: ErasureRequest,
  requests: readonly ErasureRequest[],
): Promise<void> {
  const keys = new Set(requests.flatMap((one) => ("key" in one ? [one.key] : [])));
  const found: JobRecord[] = [];
  for await (const record of findJobs(jobs, request, keys)) found.push(record);
  const running = found.filter(({ attempt }) => attempt !== undefined).length;
  if (running > 0) rejectRunning(request, running);
  for (const record of found) await deleteJob(jobs, record, request);
}

async function* findJobs(
  jobs: JobStore,
  request: ErasureRequest,
  keys: ReadonlySet<string>,
): AsyncGenerator<JobRecord, void> {
  if (!("key" in request || "account" in request)) return;
  const query = "key" in request ? { key: request.key } : {};
  // A record contains the path of its account, or only its last name. A key that was moved to the
  // account may have left jobs without an account, and jobs that belong to another account.
  const isErased = ({ key, account }: JobRecord) =>
    "key" in request ||
    (account === undefined ? keys.has(key) : account.split("/").at(-1) === request.account);
  for (let after: string | undefined; ;) {
    const page = await jobs.list(query, { limit: PAGE_SIZE, after });
    for (const record of page.items) if (isErased(record)) yield record;
    after = page.next ?? undefined;
    if (after === undefined) return;
  }
}

/** Deletes a job, even if a gateway changes it at the same time. */
async function deleteJob(
  jobs: JobStore,
  { id, version }: JobRecord,
  request: ErasureRequest,
): Promise<void> {
  for (let next: number | undefined = version; next !== undefined;) {
    try {
      return await jobs.delete(id, next);
    } catch (error) {
      if (getFault(error)?.code !== "version_conflict") throw error;
      const changed = await jobs.find(id);
      if (changed?.attempt !== undefined) rejectRunning(request, 1);
      next = changed?.version;
    }
  }
}

const rejectRunning = (request: ErasureRequest, count: number): never =>
  fail(
    "conflict",
    `The ${"account" in request ? "account" : "key"} has ${count} running jobs. Cancel its batches and background responses, and wait for the end of its videos, which cannot be canceled.`,
    { code: "jobs_running" },
  );

/** Returns the erasures of an account: its own, and those of the keys that are directly in it. */
async function expandAccount(
  store: Pick<Store, "listKeys">,
  request: Extract<ErasureRequest, { account: string }>,
): Promise<readonly ErasureRequest[]> {
  const keys = (await listAllKeys(store)()).filter(({ account }) => account === request.account);
  const ids = new Set(keys.map(({ id }) => id));
  return [request, ...[...ids].map((key) => ({ key }))];
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

function toErasure({ label, key, account }: InputOf<"erase">): ErasureRequest {
  if ([label, key, account].filter((one) => one !== undefined).length !== 1)
    return fail("invalid", "/label: expected one of a label, a key, and an account.", {
      code: "bad_input",
      param: "/label",
    });
  if (key !== undefined) return { key };
  if (account !== undefined) return { account };
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
