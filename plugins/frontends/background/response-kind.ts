// Describes background responses for operators.
import type { JobDescription, JobKind, JobRecord, JobStatus } from "tollgate/plugin";
import { FAILURES, PREFIX, type BackgroundService } from "./background-service.ts";
import { parseResponse, RESPONSE_KIND, type ResponseState } from "./response-record.ts";

const STATUS: Readonly<Record<ResponseState, JobStatus>> = {
  running: "running",
  completed: "completed",
  incomplete: "completed",
  failed: "failed",
  canceled: "canceled",
};

/** Events of OpenAI's webhooks. */
const EVENTS: { readonly [S in ResponseState]?: string } = {
  completed: "response.completed",
  incomplete: "response.incomplete",
  failed: "response.failed",
  canceled: "response.cancelled",
};

export const createResponseKind = (background: BackgroundService): JobKind => ({
  kind: RESPONSE_KIND,
  openStates: ["running"],
  describe,
  cancel: (record) => background.requestCancellation(parseResponse(record)),
});

function describe(record: JobRecord): JobDescription {
  const { state, model, origin, endedAt, reason, cancelRequestedAt } = parseResponse(record);
  const isCanceling = state === "running" && cancelRequestedAt !== undefined;
  return {
    id: `${PREFIX}_${record.id}`,
    status: isCanceling ? "canceling" : STATUS[state],
    model,
    endedAt,
    message: reason && FAILURES[reason],
    origin,
    event: EVENTS[state],
  };
}
