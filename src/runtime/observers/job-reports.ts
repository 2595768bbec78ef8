// Reports the end of jobs. Engines write the records of jobs, and the process that owns the store
// compares each record with the one before.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { nanoToDecimal } from "../../money/decimal.ts";
import type { EndedJob, JobKind } from "../../plugin/store/job-kind.ts";
import type { JobRecord, JobStore } from "../../plugin/store/job.ts";
import type { GatewayEvent } from "../../plugin/gateway-event.ts";

/** Functions of the frontends that are mounted now. */
export interface JobHooks {
  readonly kinds: ReadonlyMap<string, JobKind>;
  /** `beforeJobEnds` of each frontend. */
  readonly beforeEnd: readonly ((job: EndedJob) => Promise<void>)[];
}

const NO_HOOKS: JobHooks = { kinds: new Map(), beforeEnd: [] };

/** The frontends' functions for jobs. Those of the current config generation are used. */
export class JobRegistry {
  current: JobHooks = NO_HOOKS;
}

/** Wraps the records of jobs. `onEnded` is called when the end of a job is durable. */
export function withJobReports(
  jobs: JobStore,
  registry: Pick<JobRegistry, "current">,
  onEnded: (job: EndedJob) => void,
): JobStore {
  return {
    find: (id) => jobs.find(id),
    list: (query, page) => jobs.list(query, page),
    lease: (request) => jobs.lease(request),
    nextDueAt: (kinds) => jobs.nextDueAt(kinds),
    count: (kinds) => jobs.count(kinds),
    delete: (id, version) => jobs.delete(id, version),
    async put(record) {
      const { kinds, beforeEnd } = registry.current;
      const kind = kinds.get(record.kind);
      const job = kind && endedJob(kind, record);
      if (!job || isEnded(kind, await jobs.find(record.id))) return jobs.put(record);
      for (const hook of beforeEnd) await hook(job);
      await jobs.put(record);
      onEnded(job);
    },
  };
}

const isEnded = ({ openStates }: JobKind, record: JobRecord | undefined): boolean =>
  record !== undefined && !openStates.includes(record.state);

function endedJob(kind: JobKind, record: JobRecord): EndedJob | undefined {
  if (!isEnded(kind, record)) return undefined;
  const description = kind.describe(record);
  const { id, state, kind: name, key, account, createdAt } = record;
  return description
    ? { ...description, record: id, state, kind: name, key, account, createdAt }
    : undefined;
}

/** Returns the event for observers. */
export function jobEndedEvent(job: EndedJob): GatewayEvent {
  const { id, kind, status, key, account, createdAt, endedAt, model, providers, origin } = job;
  return {
    type: "job_ended",
    at: endedAt ?? wallClock(),
    kind,
    job: id,
    status: status as Extract<GatewayEvent, { type: "job_ended" }>["status"],
    key,
    account,
    createdAt,
    model,
    providers,
    costUsd: job.costNano == null ? undefined : nanoToDecimal(job.costNano),
    origin,
  };
}
