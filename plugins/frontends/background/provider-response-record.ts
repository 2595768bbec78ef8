// Records of responses that a provider runs in the background. A record has no prompts and no
// responses: these are encrypted in files.
import type { BatchTarget, HeadersOut, JobOrigin, JobStore, Price } from "tollgate/plugin";
import type { LogPosition } from "../jobs/event-log.ts";
import { ownerNameOf, type Owner } from "../jobs/owned-records.ts";
import { isVersionConflict, parseJob, writeJob, type StoredJob } from "../jobs/stored-jobs.ts";
import { PROVIDER_RESPONSE_KIND } from "./response-record.ts";

/**
 * State of a response. `reserving`: its creation has not ended. `submitting`: it is unknown whether
 * the provider has received it. `running`: the provider runs it. `settling`: it has ended without a
 * result, and is not billed. The others are final:
 *
 * - `completed` and `incomplete`: it is billed by its usage.
 * - `failed`: the provider could not generate it. It is billed by its usage, if it has one.
 * - `canceled`: it is billed by its usage, or as an estimate.
 * - `expired`: the provider did not end it in time. It is billed as an estimate.
 * - `deleted`: the provider does not have it any more. It is billed as an estimate.
 * - `lost`: it is unknown whether the provider ran it. It is billed as an estimate.
 */
export type ProviderResponseState = OpenState | FinalState;
type OpenState = "reserving" | "submitting" | "running" | "settling";
export type FinalState =
  | "completed"
  | "incomplete"
  | "failed"
  | "canceled"
  | "expired"
  | "deleted"
  | "lost";

export const OPEN_STATES: readonly OpenState[] = ["reserving", "submitting", "running", "settling"];
export const isOpen = (state: ProviderResponseState): boolean =>
  OPEN_STATES.includes(state as OpenState);

/** Whether its client has not received its ID yet. */
export const isBeingCreated = (state: ProviderResponseState): boolean =>
  state === "reserving" || state === "submitting";

/** How a response without a result ended, which is stored before it is billed. */
export interface ResponseEnd {
  readonly state: FinalState;
  /** Whether the reservation is billed as an estimate. Otherwise, nothing is billed. */
  readonly isEstimated: boolean;
  /** Reason for the client. */
  readonly message: string;
}

/** The file with the events of a response that has ended. */
export interface ResponseResult {
  readonly file: string;
  /** Encrypted key of the file. */
  readonly key: string;
  /** Begin of the frame with the last event. */
  readonly last: LogPosition;
  readonly bytes: number;
}

export interface ProviderResponseData {
  /** Encrypted key of the file with the response before its first event. */
  readonly key: string;
  /** Encrypted key of the file with the request, which is deleted when the response has ended. */
  readonly requestKey: string;
  /** Model name, as the client wrote it. */
  readonly model: string;
  /** Path of the request. */
  readonly path: string;
  readonly target: BatchTarget;
  readonly origin: JobOrigin;
  /** Digest of the client's key. */
  readonly digest?: string | undefined;
  readonly account?: string | undefined;
  readonly labels: HeadersOut;
  readonly price?: Price | undefined;
  readonly pricedAt: number;
  /** Reservation in billionths of a US dollar. `null` if no price is known. */
  readonly holdNano: string | null;
  /** The provider's reference, encrypted for the owner. */
  readonly reference?: string | undefined;
  readonly isQueued?: boolean | undefined;
  /** In Unix milliseconds. */
  readonly cancelRequestedAt?: number | undefined;
  /** Why the gateway cancels the response itself. */
  readonly cancelReason?: string | undefined;
  /** Whether the client has deleted the response. It is deleted when it has ended. */
  readonly isDeleted?: boolean | undefined;
  readonly end?: ResponseEnd | undefined;
  readonly result?: ResponseResult | undefined;
  /** In Unix milliseconds. */
  readonly endedAt?: number | undefined;
  /** Cost in billionths of a US dollar. */
  readonly costNano?: string | undefined;
  /** Time until the next poll, in milliseconds. */
  readonly pollMs?: number | undefined;
  /** Number of steps that failed one after the other. */
  readonly failures?: number | undefined;
}

export type ProviderResponse = StoredJob<ProviderResponseData, ProviderResponseState>;

export const parseProviderResponse = parseJob<ProviderResponseData, ProviderResponseState>;

/** Name of the file with the request. */
export const requestFileOf = (id: string): string => `${id}.request`;

/** Returns the owner of a response. */
export const ownerOfRecord = ({ record: { key, account } }: ProviderResponse): Owner => ({
  key,
  account: account ?? undefined,
  name: ownerNameOf(key, account),
});

/** A change of a response, with the time at which its next step is due. */
export interface ProviderResponseChange {
  readonly state?: ProviderResponseState;
  readonly data?: Partial<ProviderResponseData>;
  /** In Unix milliseconds. Default: unchanged. */
  readonly dueAt?: number;
  /** Whether the engine that leased the response keeps it. */
  readonly isLeased?: boolean;
}

export class ProviderResponseRecords {
  readonly #jobs: () => JobStore;

  constructor(jobs: () => JobStore) {
    this.#jobs = jobs;
  }

  async create(
    owner: Owner,
    of: { readonly id: string; readonly attempt: string; readonly dueAt: number },
    data: ProviderResponseData,
  ): Promise<ProviderResponse> {
    const { key, account } = owner;
    const record = { ...of, kind: PROVIDER_RESPONSE_KIND, key, account, version: 1 };
    const created = { ...record, createdAt: Date.now(), state: "reserving" as const };
    return writeJob<ProviderResponseData, ProviderResponseState>(this.#jobs(), created, data);
  }

  /** Returns a response of any owner. */
  async read(id: string): Promise<ProviderResponse | undefined> {
    const record = await this.#jobs().find(id);
    return record?.kind === PROVIDER_RESPONSE_KIND ? parseProviderResponse(record) : undefined;
  }

  /**
   * Writes a change. Rejects with the code `version_conflict` if the response was changed or leased
   * since it was read.
   */
  async change(
    response: ProviderResponse,
    { state = response.state, data, dueAt, isLeased = false }: ProviderResponseChange,
  ): Promise<ProviderResponse> {
    const { record, state: _, ...before } = response;
    const next = {
      ...record,
      version: record.version + 1,
      state,
      dueAt: dueAt ?? record.dueAt,
      owner: isLeased ? record.owner : undefined,
      // A response that has ended has no reservation.
      attempt: isOpen(state) ? record.attempt : undefined,
    };
    return writeJob(this.#jobs(), next, { ...before, ...data });
  }

  /**
   * Writes a request of a client. An engine that has leased the response keeps its lease, and takes
   * the next step immediately. A creation that is not interrupted applies a cancellation itself. A
   * response that has ended can only be deleted.
   */
  async request(
    response: ProviderResponse,
    data: Partial<ProviderResponseData>,
  ): Promise<ProviderResponse | undefined> {
    for (let before: ProviderResponse | undefined = response; before;) {
      const { owner, dueAt } = before.record;
      if (!isOpen(before.state) && data.isDeleted !== true) return before;
      const now = Date.now();
      const isLeased = owner != null && (dueAt ?? 0) > now;
      const isWaiting =
        isLeased || (isBeingCreated(before.state) && data.cancelRequestedAt !== undefined);
      try {
        return await this.change(before, { data, dueAt: isWaiting ? dueAt! : now, isLeased });
      } catch (error) {
        if (!isVersionConflict(error)) throw error;
        before = await this.read(before.record.id);
      }
    }
    return undefined;
  }

  async delete({ record: { id, version } }: ProviderResponse): Promise<void> {
    await this.#jobs().delete(id, version);
  }
}
