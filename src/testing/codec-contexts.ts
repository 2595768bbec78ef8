import type { CallContext, ResponseContext, LossReporter } from "../plugin/protocol.ts";

/**
 * One loss that a codec reported with `reportLoss()`: the field, and whether it was dropped or
 * approximated.
 */
export interface ReportedLoss {
  readonly field: string;
  readonly how: "dropped" | "approximated";
  readonly code: string | undefined;
}

/**
 * Losses that a codec reported, in order, added to the context that it received. A test reads them
 * after the codec has run.
 */
export interface LossLog {
  readonly losses: readonly ReportedLoss[];
}

/**
 * With `strict`, a loss throws, as in the host's strict mode. The list can still be extended when
 * the rest of the object is frozen.
 */
function createLossLog<T extends object>(context: T, strict: boolean): T & LossReporter & LossLog {
  const losses: ReportedLoss[] = [];
  const lose: LossReporter["reportLoss"] = (field, how, code) => {
    losses.push({ field, how, code });
    if (strict) throw new Error(`Field ${field} would be ${how}.`);
  };
  const get = () => losses;
  return Object.defineProperty({ reportLoss: lose, ...context }, "losses", { get }) as T &
    LossReporter &
    LossLog;
}

/**
 * Creates the call context for a client half, for tests that run one without a host. It records the
 * reported losses.
 */
export function createCallContext(
  of: Partial<CallContext> = {},
  strict = false,
): CallContext & LossLog {
  const model = of.model ?? "model";
  const context: Omit<CallContext, "reportLoss" | "emulateStopSequences"> = {
    actionType: "generate",
    action: "generate",
    model,
    info: { model, operation: "chat" },
    stream: false,
    params: {},
    query: new URLSearchParams(),
    ...of,
  };
  const made = createLossLog(context, strict);
  const emulateStopSequences = (texts: readonly string[]): void => {
    if (texts.some((text) => text !== "")) made.reportLoss("stop", "approximated", "emulated");
  };
  return Object.defineProperty(made, "emulateStopSequences", {
    value: emulateStopSequences,
  }) as CallContext & LossLog;
}

/** Creates the response context for a server half, for tests that run one without a host. */
export function createResponseContext(
  to: Partial<ResponseContext> = {},
  strict = false,
): ResponseContext & LossLog {
  const context: Omit<ResponseContext, "reportLoss"> = {
    id: "x1",
    model: "provider/model",
    created: 1795000000,
    stream: false,
    body: {},
    query: new URLSearchParams(),
    ...to,
  };
  return createLossLog(context, strict);
}
