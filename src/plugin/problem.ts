import type { Opt } from "../model/values.ts";

/** A problem with the options of a plugin. */
export interface Problem {
  /** JSON pointer into the options, such as `/max`. */
  path: string;
  /** Description of the problem, without file and line, which the host adds. */
  message: string;
  /** Instruction for fixing the problem. */
  hint?: Opt<string>;
  /** Whether the problem rejects the config (`error`) or is only reported. Default: `error`. */
  severity?: Opt<"error" | "warning">;
}
