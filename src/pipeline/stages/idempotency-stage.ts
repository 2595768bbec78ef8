// Handles requests with an Idempotency-Key. A client that does not receive a response sends the
// request again with the same key. A request that was billed is not executed again: the client
// receives its outcome.
import { hash } from "node:crypto";
import { fail } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { IdempotencyOutcome } from "../generation.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { AdmissionState } from "../exchange/exchange-state.ts";

const MAX_KEY_LENGTH = 255;
const RETRY_AFTER_MS = 1_000;

/** Claims the request's idempotency key. Returns undefined if the request has none. */
export function claimIdempotencyKey(x: HostExchange): Promise<void> | undefined {
  const name = x.state.connection.req.headers["idempotency-key"];
  if (name === undefined || x.actionType !== "generate") return undefined;
  return claimKey(x, String(name));
}

async function claimKey(x: HostExchange, name: string): Promise<void> {
  const state = x.state;
  if (name === "" || name.length > MAX_KEY_LENGTH)
    fail("invalid", `Idempotency-Key must have 1 to ${MAX_KEY_LENGTH} characters.`, {
      code: "idempotency_key_invalid",
    });
  const who = x.identity!.id;
  const named = { keyId: who, idempotencyKeyHash: hash("sha256", name), requestId: x.id };
  const body = hash(
    "sha256",
    Buffer.concat([Buffer.from(`${x.path}\n`), state.body.received!.raw]),
  );
  const found = await state.gen.idempotency.claim({ ...named, bodyHash: body });
  switch (found.state) {
    case "new":
      state.admission.idempotencyClaim = named;
      return;
    case "running":
      return fail("conflict", "A request with this Idempotency-Key is still in progress.", {
        code: "idempotency_in_flight",
        retryAfterMs: RETRY_AFTER_MS,
      });
    case "mismatch":
      return fail("mismatch", "This Idempotency-Key was already used for a different request.", {
        code: "idempotency_mismatch",
      });
    case "completed":
      return throwAlreadyDone(found.outcome);
  }
}

function throwAlreadyDone(outcome: IdempotencyOutcome): never {
  const { requestId, status, usage, costNano } = outcome;
  const counts = Object.fromEntries(
    Object.entries(usage).filter(([, count]) => count !== undefined),
  ) as JsonObject;
  return fail(
    "conflict",
    `A request with this Idempotency-Key was completed with status ${status} as ${requestId} and billed once. Its response was not stored.`,
    {
      code: "idempotency_done",
      details: { request: requestId, status, usage: counts, cost_nano_usd: costNano },
    },
  );
}

/**
 * Frees the key of a request that failed and cost nothing. This happens before the client receives
 * the failure, so that a retry can use the key.
 */
export function freeIfUnbilled(x: HostExchange): Promise<void> | undefined {
  const state = x.state;
  const { admission } = state;
  const named = admission.idempotencyClaim;
  if (!named || state.billing.isJob || billedCalls(x).length > 0) return undefined;
  admission.idempotencyClaim = undefined;
  return reportCompletion(x, named, undefined);
}

/** Completes the claim. Called when the pipeline has ended. */
export function completeClaim(x: HostExchange): void {
  const { admission, billing, connection } = x.state;
  const named = admission.idempotencyClaim;
  if (!named) return;
  const billed = billedCalls(x);
  const last = billed.at(-1);
  const cost = billed.reduce<bigint | null>(
    (sum, { costNano }) => (sum === null || costNano === null ? null : sum + costNano),
    0n,
  );
  void reportCompletion(
    x,
    named,
    (last !== undefined || billing.isJob || undefined) && {
      requestId: x.id,
      status: connection.isDisconnected ? 499 : connection.res.statusCode,
      usage: last?.usage ?? {},
      costNano: cost === null || billing.isJob ? null : String(cost),
    },
  );
}

const billedCalls = ({ state: { billing } }: HostExchange) =>
  [...billing.records, ...(billing.answerRecords ?? [])].filter(({ state }) => state !== "void");

/**
 * Reports the end of a request to the registry. Failures are logged: if the process that holds the
 * registry has ended, this process is about to end too.
 */
async function reportCompletion(
  x: HostExchange,
  named: NonNullable<AdmissionState["idempotencyClaim"]>,
  outcome: IdempotencyOutcome | undefined,
): Promise<void> {
  const { idempotency, log } = x.state.gen;
  try {
    await idempotency.complete(named, outcome);
  } catch (err) {
    log.error({ request: x.id, err }, "idempotency result not recorded");
  }
}
