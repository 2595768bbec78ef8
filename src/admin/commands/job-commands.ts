// Commands about jobs. Their records are in the store, so the commands show the jobs of all gateways
// on it. The frontend that runs a kind of job describes and cancels its jobs.
import { fail } from "../../model/error.ts";
import { nanoToDecimal } from "../../money/decimal.ts";
import type { JobDescription, JobKind, JobStatus } from "../../plugin/store/job-kind.ts";
import type { JobQuery, JobRecord, JobStore } from "../../plugin/store/job.ts";
import type { Store } from "../../plugin/store/store.ts";
import { KeyNames } from "../../runtime/requests/key-names.ts";
import { isWithinAccount } from "../../runtime/requests/series-selection.ts";
import { jobCursor } from "../../plugin/store/job-cursor.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import type { InputOf } from "../schema/command-specs.ts";

/** A job, as operators see it. */
export interface ShownJob extends Pick<
  JobDescription,
  "id" | "status" | "model" | "providers" | "progress" | "endedAt" | "message"
> {
  readonly kind: string;
  readonly key: string;
  readonly keyName: string | undefined;
  readonly account: string | undefined;
  /** Cost so far in US dollars. Undefined if it is not known. */
  readonly costUsd: string | undefined;
  readonly createdAt: number;
  /** ID of the request that created the job. */
  readonly request: string | undefined;
  readonly canCancel: boolean;
}

export interface ShownJobs {
  readonly items: readonly ShownJob[];
  /** Whether older jobs were not searched, or not returned. */
  readonly isTruncated: boolean;
  /** Cursor for the older jobs. Undefined if there are none. */
  readonly next: string | undefined;
}

export interface JobDetails {
  readonly job: ShownJob;
}

const PAGE_SIZE = 200;
/** Maximum number of records that one page searches for each kind and state. */
const MAX_READ = 10_000;

const OPEN_STATUSES: ReadonlySet<JobStatus> = new Set(["queued", "running", "canceling"]);

interface JobCommandsOptions {
  readonly store: Pick<Store, "jobs" | "listKeys">;
  /** Kinds of jobs that the frontends run now. */
  readonly kinds: () => ReadonlyMap<string, JobKind>;
  /** Returns the names from the outermost account to this one. */
  readonly accountPath: (account: string) => readonly string[];
}

/** Jobs of one query, the newest first. */
interface FoundJobs {
  readonly jobs: readonly DescribedJob[];
  /** Cursor of the last record that was read. Undefined if no record is left. */
  readonly readTo: string | undefined;
}

interface DescribedJob {
  readonly record: JobRecord;
  readonly kind: JobKind;
  readonly description: JobDescription;
}

export function createJobCommands({ store, kinds, accountPath }: JobCommandsOptions) {
  const names = new KeyNames(store);
  const requireJobs = (): JobStore =>
    store.jobs ?? fail("unavailable", "This gateway's store keeps no jobs.", { code: "no_jobs" });
  const describe = (record: JobRecord | undefined): DescribedJob | undefined => {
    const kind = record && kinds().get(record.kind);
    const description = kind?.describe(record!);
    return description ? { record: record!, kind: kind!, description } : undefined;
  };
  const pathOf = ({ account }: JobRecord): string | undefined =>
    account == null || account.includes("/")
      ? (account ?? undefined)
      : accountPath(account).join("/");
  const isVisible = (record: JobRecord, within: string | undefined): boolean =>
    within === undefined || isWithinAccount(pathOf(record), within);
  /** A job of another account is treated as nonexistent. */
  const find = async ({ id, account }: InputOf<"jobs.show">): Promise<DescribedJob> => {
    const jobs = requireJobs();
    const found = describe((await jobs.find(id)) ?? (await jobs.find(withoutPrefix(id))));
    if (found && isVisible(found.record, account)) return found;
    return fail("not_found", `Job "${id}" not found.`, { code: "no_such_job" });
  };
  const show = async ({ record, kind, description }: DescribedJob): Promise<ShownJob> => {
    const { id, status, model, providers, progress, endedAt, message } = description;
    const isOpen = OPEN_STATUSES.has(status);
    return {
      id,
      kind: record.kind,
      status,
      model,
      providers,
      progress,
      key: record.key,
      keyName: (await names.readAll()).get(record.key),
      account: pathOf(record),
      costUsd: description.costNano == null ? undefined : nanoToDecimal(description.costNano),
      createdAt: record.createdAt,
      endedAt,
      message,
      request: description.origin?.request,
      canCancel: isOpen && status !== "canceling" && kind.cancel !== undefined,
    };
  };
  return withInputChecks({
    "jobs.list": async (input): Promise<ShownJobs> => {
      const { kind, key, account, limit = 100, status, after } = input;
      const jobs = requireJobs();
      if (kind !== undefined && !kinds().has(kind)) rejectKind(kind, [...kinds().keys()]);
      const keyId = key && (await names.resolveId(key, () => true));
      const matches = (one: DescribedJob | undefined): one is DescribedJob =>
        one !== undefined && isVisible(one.record, account) && hasStatus(one, status);
      const select = (record: JobRecord) => [describe(record)].find(matches);
      const all: FoundJobs[] = [];
      for (const [name, of] of kinds()) {
        if (kind !== undefined && kind !== name) continue;
        for (const query of queriesFor(of, { kind: name, key: keyId }, status))
          all.push(await read(jobs, query, { limit: limit + 1, after, select }));
      }
      const { found, next } = mergePages(all, limit);
      const items = await Promise.all(found.map(show));
      return { items, isTruncated: next !== undefined, next };
    },
    "jobs.show": async (input): Promise<JobDetails> => ({ job: await show(await find(input)) }),
    "jobs.cancel": async (input): Promise<JobDetails> => {
      const job = await find(input);
      const { kind, record, description } = job;
      if (!OPEN_STATUSES.has(description.status))
        fail("conflict", `Job "${description.id}" has ended: ${description.status}.`, {
          code: "job_ended",
        });
      if (!kind.cancel)
        return fail("unsupported", `Jobs of the kind "${record.kind}" cannot be canceled.`, {
          code: "job_not_cancelable",
        });
      await kind.cancel(record);
      return { job: await show(await find(input)) };
    },
  });
}

/** An ID of clients has a prefix, and the ID of its record has none. */
const withoutPrefix = (id: string): string => id.replace(/^[a-z]{2,16}[-_]/, "");

const hasStatus = (
  { description }: DescribedJob,
  status: InputOf<"jobs.list">["status"],
): boolean =>
  status === undefined ||
  (status === "open" ? OPEN_STATUSES.has(description.status) : status === description.status);

/** Open jobs are few, so they are read by their states. */
const queriesFor = (
  { openStates }: JobKind,
  query: JobQuery,
  status: InputOf<"jobs.list">["status"],
): readonly JobQuery[] =>
  status !== undefined && (status === "open" || OPEN_STATUSES.has(status))
    ? openStates.map((state) => ({ ...query, state }))
    : [query];

/** Reads jobs, the newest first, until `limit` of them match or the maximum was read. */
async function read(
  jobs: JobStore,
  query: JobQuery,
  of: {
    readonly limit: number;
    readonly after: string | undefined;
    readonly select: (record: JobRecord) => DescribedJob | undefined;
  },
): Promise<FoundJobs> {
  const found: DescribedJob[] = [];
  let { after } = of;
  for (let count = 0; count < MAX_READ; count += PAGE_SIZE) {
    const page = await jobs.list(query, { limit: PAGE_SIZE, after });
    for (const record of page.items) {
      const one = of.select(record);
      if (one) found.push(one);
      if (found.length >= of.limit) return { jobs: found, readTo: jobCursor(record) };
    }
    after = page.next ?? undefined;
    if (after === undefined) return { jobs: found, readTo: undefined };
  }
  return { jobs: found, readTo: after };
}

/** Merges the jobs of several queries up to the point to which all of them were read. */
function mergePages(
  all: readonly FoundJobs[],
  limit: number,
): { readonly found: readonly DescribedJob[]; readonly next: string | undefined } {
  const readTo = all.flatMap((one) => one.readTo ?? []).toSorted();
  // Jobs are listed from the highest cursor to the lowest.
  const end = readTo.at(-1);
  const cursorOf = ({ record }: DescribedJob): string => jobCursor(record);
  const found = all
    .flatMap(({ jobs }) => jobs)
    .filter((job) => end === undefined || cursorOf(job) >= end)
    .toSorted((a, b) => (cursorOf(a) > cursorOf(b) ? -1 : 1));
  return found.length > limit
    ? { found: found.slice(0, limit), next: cursorOf(found[limit - 1]!) }
    : { found, next: end };
}

const rejectKind = (kind: string, known: readonly string[]): never =>
  fail(
    "not_found",
    `No frontend runs jobs of the kind "${kind}". Kinds: ${known.join(", ") || "none"}.`,
    { code: "no_such_job_kind", param: "kind" },
  );
