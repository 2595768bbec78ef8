// The store in a worker. Every method is a request to the process that owns the store. Nothing is
// cached here, so every worker reads what the others have written.
import type {
  Store,
  ClientRequestInfo,
  StoreCommand,
  Reserve,
  Settle,
  CommandResult,
} from "../../plugin/store/store.ts";
import { fail } from "../../model/error.ts";
import type { JobReserve, JobStore, JobTake } from "../../plugin/store/job.ts";
import type { IpcHandlers, IpcLink } from "./ipc-link.ts";
import { JOB_METHODS, STORE_READ_METHODS } from "../ledger/transferable-store.ts";

/** Names of the requests for the records of jobs. */
export const JOB_REQUESTS = JOB_METHODS.map((name) => `jobs.${name}` as const);

/**
 * Has no lease, because the owner sends the heartbeats for all processes. If the owner's store has
 * no jobs, requests for jobs are rejected with the code `no_jobs`.
 */
export const createRemoteStore = (link: Pick<IpcLink, "call">): Store => ({
  open: (owner) => link.call("open", owner),
  apply: async (batch) => unpackResults(await link.call<PackedResults>("apply", packBatch(batch))),
  ...(Object.fromEntries(
    // A signal cannot be sent. The owner itself limits the queries per key.
    STORE_READ_METHODS.map((name) => [
      name,
      (...args: unknown[]) => link.call(name, ...args.filter((arg) => !hasSignal(arg))),
    ]),
  ) as Pick<Required<Store>, (typeof STORE_READ_METHODS)[number]>),
  jobs: Object.fromEntries(
    JOB_METHODS.map((name) => [name, (...args: unknown[]) => link.call(`jobs.${name}`, ...args)]),
  ) as unknown as JobStore,
});

/**
 * Handlers on the owner's side. A worker does not open the store, and its writes are batched with
 * the writes of other workers.
 */
export const createStoreHandlers = (
  store: Store,
  reports: Pick<Store, "listEntries" | "sumEntries">,
  apply: Store["apply"],
  jobs: JobStore | undefined = store.jobs,
): IpcHandlers & Record<"apply" | (typeof STORE_READ_METHODS)[number], IpcHandlers[string]> => ({
  apply: async (packed: PackedBatch) => packResults(await apply(unpackBatch(packed))),
  findKey: (digest: string) => store.findKey(digest),
  listKeys: (page?: never) => store.listKeys(page),
  // Methods that the store lacks return an empty result. A worker never requests an account that
  // does not exist.
  listAccounts: (page?: never) => store.listAccounts?.(page) ?? { items: [] },
  readLimits: (limits: never, at: number) => store.readLimits?.(limits, at) ?? [],
  listEntries: (query: never, page?: never) => reports.listEntries(query, page),
  sumEntries: (query: never) => reports.sumEntries(query),
  findPrice: (hash: string) => store.findPrice?.(hash),
  verify: () => store.verify?.() ?? [],
  ...Object.fromEntries(
    JOB_METHODS.map((name) => [
      `jobs.${name}`,
      (...args: never[]) => (requireJobs(jobs)[name] as (...args: never[]) => unknown)(...args),
    ]),
  ),
});

const requireJobs = (jobs: JobStore | undefined): JobStore =>
  jobs ?? fail("invalid", "This store does not support jobs.", { code: "no_jobs" });

const hasSignal = (arg: unknown): boolean =>
  typeof arg === "object" && arg !== null && "signal" in arg;

// Encodes a batch for transport between two processes. The two commands of every call are encoded
// as rows of one JSON text. On both sides, this takes a third less time than cloning objects.
// Amounts exceed the range of JSON numbers, so they are encoded as text. All other commands, and
// commands with rare fields, are cloned.

interface PackedBatch {
  /** JSON rows. A number marks the position of the next command from `others`. */
  readonly rows: string;
  readonly others: readonly StoreCommand[];
}

type At<C> = C & { at: number };
/**
 * Requires every field of a command, so that a new field causes a type error until a row contains
 * it.
 */
type AllFields<C> = { [K in keyof C]-?: C[K] | undefined };

const encodeAmount = (value: bigint | null | undefined): string | null =>
  value == null ? null : String(value);
const decodeAmount = (text: string | null): bigint | null => (text === null ? null : BigInt(text));

const encodeReserve = (c: At<Reserve>) =>
  [
    "r",
    c.at,
    c.attempt,
    c.request,
    c.number,
    c.key,
    c.target.provider,
    c.target.model,
    c.target.protocol,
    c.target.credential,
    c.privacy,
    c.labels,
    c.claims.map(encodeClaim),
    encodeAmount(c.holdNano),
    c.price,
    c.clientRequest && encodeClientRequest(c.clientRequest),
    c.account,
    c.job && encodeJob(c.job),
  ] as const;

function decodeReserve(r: ReturnType<typeof encodeReserve>): AllFields<At<Reserve>> {
  return {
    do: "reserve",
    at: r[1],
    attempt: r[2],
    request: r[3],
    number: r[4],
    key: r[5],
    target: { provider: r[6], model: r[7], protocol: r[8], credential: r[9] },
    privacy: r[10],
    labels: r[11],
    claims: r[12].map(decodeClaim) as Claim[],
    holdNano: decodeAmount(r[13]),
    price: r[14],
    account: r[16] ?? undefined,
    clientRequest: r[15] ? (decodeClientRequest(r[15]) as ClientRequestInfo) : undefined,
    job: r[17] ? decodeJob(r[17]) : undefined,
  };
}

const encodeJob = ({ attempt, take }: JobReserve) =>
  [attempt, take && Object.entries(take).map(([unit, n]) => [unit, String(n)] as const)] as const;
const decodeJob = ([attempt, take]: ReturnType<typeof encodeJob>): JobReserve => ({
  attempt,
  take: take
    ? (Object.fromEntries(take.map(([unit, n]) => [unit, BigInt(n)])) as JobTake)
    : undefined,
});

type Claim = Reserve["claims"][number];
/** The last two elements are `null` unless the scope is a member of a group. */
const encodeClaim = ({ scope, unit, max, per, take, maxMembers, countsOnly }: Claim) =>
  [
    scope,
    unit,
    typeof max === "bigint" ? String(max) : max,
    per,
    String(take),
    maxMembers ?? null,
    countsOnly ? 1 : null,
  ] as const;
const decodeClaim = ([scope, unit, max, per, take, maxMembers, countsOnly]: ReturnType<
  typeof encodeClaim
>): AllFields<Claim> => ({
  scope,
  unit,
  max: typeof max === "string" ? BigInt(max) : max,
  per,
  take: BigInt(take),
  maxMembers: maxMembers ?? undefined,
  countsOnly: countsOnly ? true : undefined,
});

const encodeClientRequest = ({
  model,
  frontend,
  protocol,
  mode,
  stream,
  policyBasis,
  argumentsHash,
}: ClientRequestInfo) =>
  [model, frontend, protocol, mode, stream, policyBasis, argumentsHash] as const;
const decodeClientRequest = ([
  model,
  frontend,
  protocol,
  lane,
  stream,
  basis,
  argumentsHash,
]: ReturnType<typeof encodeClientRequest>): AllFields<ClientRequestInfo> => ({
  model,
  frontend,
  protocol,
  mode: lane,
  stream,
  policyBasis: basis ?? undefined,
  argumentsHash: argumentsHash ?? undefined,
});

type Ms = NonNullable<Settle["ms"]>;
const encodeSettle = (c: At<Settle>) =>
  [
    "s",
    c.at,
    c.attempt,
    c.state,
    c.usage,
    encodeAmount(c.costNano),
    c.outcome,
    c.upstreamId,
    encodeAmount(c.upstreamCostNano),
    c.finish,
    c.ms && ([c.ms.headers, c.ms.firstToken, c.ms.total] as const),
  ] as const;

function decodeSettle(r: ReturnType<typeof encodeSettle>): AllFields<Omit<At<Settle>, "parts">> {
  const ms: AllFields<Ms> | undefined = r[10] && {
    headers: r[10][0] ?? undefined,
    firstToken: r[10][1] ?? undefined,
    total: r[10][2],
  };
  return {
    do: "settle",
    at: r[1],
    attempt: r[2],
    state: r[3],
    usage: r[4],
    costNano: decodeAmount(r[5]),
    outcome: r[6],
    upstreamId: r[7] ?? undefined,
    upstreamCostNano: decodeAmount(r[8]) ?? undefined,
    finish: r[9] ?? undefined,
    ms: (ms ?? undefined) as Settle["ms"],
  };
}

type Row = ReturnType<typeof encodeReserve> | ReturnType<typeof encodeSettle> | 0;

export function packBatch(batch: readonly StoreCommand[]): PackedBatch {
  const others: StoreCommand[] = [];
  const rows = batch.map((command): Row => {
    if (command.do === "reserve") return encodeReserve(command);
    if (command.do === "settle" && command.parts === undefined) return encodeSettle(command);
    others.push(command);
    return 0;
  });
  return { rows: JSON.stringify(rows), others };
}

export function unpackBatch({ rows, others }: PackedBatch): StoreCommand[] {
  let next = 0;
  return (JSON.parse(rows) as Row[]).map((row) => {
    if (row === 0) return others[next++]!;
    return (row[0] === "r" ? decodeReserve(row) : decodeSettle(row)) as StoreCommand;
  });
}

/**
 * Results of a batch. If there is only a count to report, which is the usual case, it is a number.
 */
type PackedResults = number | readonly CommandResult[];

export const packResults = (results: readonly CommandResult[]): PackedResults =>
  results.every((verdict) => verdict.ok && !verdict.limits && !verdict.thresholds)
    ? results.length
    : results;

const OK_RESULT: CommandResult = { ok: true };

export const unpackResults = (results: PackedResults): readonly CommandResult[] =>
  typeof results === "number" ? Array.from({ length: results }, () => OK_RESULT) : results;
