// Records of jobs. A store keeps them for all gateways, and each frontend has its own data in them.
import { getFault, type JobRecord, type JobStore } from "tollgate/plugin";

/** The data of a job, with its record. */
export type StoredJob<Data, State extends string> = Data & {
  readonly record: Omit<JobRecord, "data">;
  readonly state: State;
};

/** Returns the job that a record contains. */
export const parseJob = <Data, State extends string>({
  data,
  ...record
}: JobRecord): StoredJob<Data, State> => ({
  ...(JSON.parse(data) as Data),
  record,
  state: record.state as State,
});

/** Writes a record, and returns its job. Rejects if its version was written before. */
export async function writeJob<Data, State extends string>(
  jobs: JobStore,
  record: Omit<JobRecord, "data"> & { readonly state: State },
  data: Data,
): Promise<StoredJob<Data, State>> {
  await jobs.put({ ...record, data: JSON.stringify(data) });
  return { ...data, record, state: record.state };
}

/** Whether another gateway or request has written the next version of a record. */
export const isVersionConflict = (error: unknown): boolean =>
  getFault(error)?.code === "version_conflict";

/**
 * Returns a provider's message as a record contains it: without control characters.
 * @param most Maximum length in characters.
 */
export const toRecordMessage = (message: string, most = 500): string =>
  message.slice(0, most).replaceAll(/\p{Cc}/gu, " ");
