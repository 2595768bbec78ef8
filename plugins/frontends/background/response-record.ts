// Records of background responses. A record has no prompts and no responses: these are encrypted in
// the log of the response.
import { fail, type JobOrigin, type JobStore } from "tollgate/plugin";
import type { LogPosition } from "../jobs/event-log.ts";
import { queryOf, type Owner } from "../jobs/owned-records.ts";
import { isVersionConflict, parseJob, writeJob, type StoredJob } from "../jobs/stored-jobs.ts";

export const RESPONSE_KIND = "response";
/** Kind of a response that its provider runs. */
export const PROVIDER_RESPONSE_KIND = "provider_response";
const KINDS: readonly string[] = [RESPONSE_KIND, PROVIDER_RESPONSE_KIND];

/** State of a response. All but the first are final. */
export type ResponseState = "running" | "completed" | "incomplete" | "failed" | "canceled";

/** Why a response failed without an event that contains the reason. */
export type FailureReason = "gateway_stopped" | "storage";

export interface ResponseData {
  /** Encrypted key of the log. */
  readonly key: string;
  /** Model name as the client wrote it. */
  readonly model: string;
  /** The request that created the response. The ledger rows contain its ID. */
  readonly origin: JobOrigin;
  /** In Unix milliseconds. */
  readonly endedAt?: number | undefined;
  /** The provider's ID of the response. */
  readonly upstreamId?: string | undefined;
  /** Begin of the frame with the last event, if the response has ended with an event. */
  readonly last?: LogPosition | undefined;
  /** Size of the log. Unset while it is written. */
  readonly bytes?: number | undefined;
  readonly reason?: FailureReason | undefined;
  /** In Unix milliseconds. */
  readonly cancelRequestedAt?: number | undefined;
}

export type StoredResponse = StoredJob<ResponseData, ResponseState>;

export const isFinal = (state: ResponseState): boolean => state !== "running";

export const parseResponse = parseJob<ResponseData, ResponseState>;

/** A change of a response. */
export interface ResponseChange {
  readonly state?: ResponseState;
  readonly data?: Partial<ResponseData>;
  /** End of the lease of a response that is running. Otherwise, when the response expires. */
  readonly dueAt: number;
}

export class ResponseRecords {
  readonly #jobs: () => JobStore;

  constructor(jobs: () => JobStore) {
    this.#jobs = jobs;
  }

  /** @param instance Name of the instance that runs the response. */
  async create(
    owner: Owner,
    of: { readonly id: string; readonly instance: string; readonly dueAt: number },
    data: ResponseData,
  ): Promise<StoredResponse> {
    const { key, account } = owner;
    const { id, instance, dueAt } = of;
    const state = "running" as const;
    const createdAt = Date.now();
    const record = { id, kind: RESPONSE_KIND, key, account, version: 1, createdAt, state, dueAt };
    return writeJob<ResponseData, ResponseState>(
      this.#jobs(),
      { ...record, owner: instance },
      data,
    );
  }

  /** Throws if the owner has more responses than this. */
  async requireAtMost(of: Owner, most: number): Promise<void> {
    let count = 0;
    for (const kind of KINDS) {
      const query = queryOf(kind, of);
      for (let after: string | undefined; count <= most;) {
        const page = await this.#jobs().list(query, { limit: Math.min(1_000, most + 1), after });
        count += page.items.filter((record) => record.account === of.account).length;
        after = page.next ?? undefined;
        if (after === undefined) break;
      }
    }
    if (count > most)
      fail(
        "quota",
        `You have ${most} background responses, the maximum. Delete responses you no longer need, or wait until they expire.`,
        { code: "too_many_stored_responses" },
      );
  }

  /** Returns a response of any owner. */
  async read(id: string): Promise<StoredResponse | undefined> {
    const record = await this.#jobs().find(id);
    return record?.kind === RESPONSE_KIND ? parseResponse(record) : undefined;
  }

  /**
   * Writes a change. Rejects with the code `version_conflict` if another instance changed the
   * response.
   */
  async change(
    before: StoredResponse,
    { state = before.state, data, dueAt }: ResponseChange,
  ): Promise<StoredResponse> {
    const { record, state: _, ...content } = before;
    const owner = isFinal(state) ? undefined : record.owner;
    const next = { ...record, version: record.version + 1, state, dueAt, owner };
    const endedAt = isFinal(state) ? (before.endedAt ?? Date.now()) : undefined;
    const changed: ResponseData = { ...content, ...data, endedAt };
    return writeJob(this.#jobs(), next, changed);
  }

  /** Leases responses that have expired, or whose instance has stopped. */
  async leaseDue(instance: string): Promise<readonly StoredResponse[]> {
    const at = Date.now();
    const kinds = [RESPONSE_KIND];
    const next = await this.#jobs().nextDueAt(kinds);
    if (next === undefined || next > at) return [];
    const due = await this.#jobs().lease({
      at,
      owner: instance,
      leaseMs: 60_000,
      limit: 100,
      kinds,
    });
    return due.map(parseResponse);
  }

  /** Deletes a response, whatever its version is. Its log is unreadable from then on. */
  async delete(id: string): Promise<void> {
    for (;;) {
      const found = await this.read(id);
      if (!found) return;
      try {
        return await this.#jobs().delete(id, found.record.version);
      } catch (error) {
        if (!isVersionConflict(error)) throw error;
      }
    }
  }
}
