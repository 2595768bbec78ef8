// Describes responses that a provider runs for operators, and reports how they ended.
import type { JobDescription, JobKind, JobRecord, JobStatus } from "tollgate/plugin";
import { PREFIX } from "./background-service.ts";
import {
  isOpen,
  OPEN_STATES,
  parseProviderResponse,
  type FinalState,
} from "./provider-response-record.ts";
import type { ProviderResponseService } from "./provider-response-service.ts";
import { PROVIDER_RESPONSE_KIND } from "./response-record.ts";

/** Statuses of the ends, and the events of OpenAI's webhooks. */
const ENDS: { readonly [S in FinalState]: readonly [status: JobStatus, event: string] } = {
  completed: ["completed", "response.completed"],
  incomplete: ["completed", "response.incomplete"],
  failed: ["failed", "response.failed"],
  canceled: ["canceled", "response.cancelled"],
  expired: ["expired", "response.failed"],
  deleted: ["failed", "response.failed"],
  lost: ["failed", "response.failed"],
};

export const createProviderResponseKind = (service: ProviderResponseService): JobKind => ({
  kind: PROVIDER_RESPONSE_KIND,
  openStates: OPEN_STATES,
  describe,
  cancel: (record) => service.requestCancellation(parseProviderResponse(record)),
});

function describe(record: JobRecord): JobDescription | undefined {
  const response = parseProviderResponse(record);
  const { state, model, target, origin, isQueued, cancelRequestedAt, costNano, end } = response;
  if (state === "reserving") return undefined;
  const common = { id: `${PREFIX}_${record.id}`, model, providers: [target.provider], origin };
  if (isOpen(state)) {
    const status = isQueued || state === "submitting" ? "queued" : "running";
    return { ...common, status: cancelRequestedAt === undefined ? status : "canceling" };
  }
  const [status, event] = ENDS[state as FinalState];
  return {
    ...common,
    status,
    costNano: costNano === undefined ? undefined : BigInt(costNano),
    endedAt: response.endedAt,
    message: end?.message,
    event,
  };
}
