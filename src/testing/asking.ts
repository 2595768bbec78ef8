import type { CallContext, AnswerContext, LossReporter } from "../plugin/protocol.ts";

/** One loss that a codec declared by `lose()`: the field, and what became of it. */
export interface ReportedLoss {
  readonly field: string;
  readonly how: "dropped" | "approximated";
  readonly code: string | undefined;
}

/** Beside what a codec is handed: the losses that it declared, in order. A test reads it after the codec has run. */
export interface LossLog {
  readonly losses: readonly ReportedLoss[];
}

/** `strict`: a loss throws, as under the host's strict mode. The list stays open when the rest is frozen. */
function losing<T extends object>(told: T, strict: boolean): T & LossReporter & LossLog {
  const losses: ReportedLoss[] = [];
  const lose: LossReporter["lose"] = (field, how, code) => {
    losses.push({ field, how, code });
    if (strict) throw new Error(`${field} would be ${how}.`);
  };
  const get = () => losses;
  return Object.defineProperty({ lose, ...told }, "losses", { get }) as T & LossReporter & LossLog;
}

/** What a client half is told of a call, for tests that run one without a host. It notes what is declared lost. */
export function asking(of: Partial<CallContext> = {}, strict = false): CallContext & LossLog {
  const model = of.model ?? "model";
  const told: Omit<CallContext, "lose" | "cutAt"> = {
    op: "generate",
    name: "generate",
    model,
    info: { model, kind: "chat" },
    stream: false,
    params: {},
    query: new URLSearchParams(),
    ...of,
  };
  const made = losing(told, strict);
  const cutAt = (texts: readonly string[]): void => {
    if (texts.some((text) => text !== "")) made.lose("stop", "approximated", "emulated");
  };
  return Object.defineProperty(made, "cutAt", { value: cutAt }) as CallContext & LossLog;
}

/** What a server half is told of the answer it writes. */
export function answering(
  to: Partial<AnswerContext> = {},
  strict = false,
): AnswerContext & LossLog {
  const told: Omit<AnswerContext, "lose"> = {
    id: "x1",
    model: "provider/model",
    created: 1795000000,
    stream: false,
    body: {},
    query: new URLSearchParams(),
    ...to,
  };
  return losing(told, strict);
}
