import type { Opt } from "../model/values.ts";

/** `path` is a JSON pointer into the options. */
export interface Problem {
  /** JSON pointer into the options, such as `/max`. */
  path: string;
  /** What is wrong, without the file and the line, which the host adds. */
  message: string;
  /** How to fix it. */
  hint?: Opt<string>;
  /** Whether the problem rejects the config (`error`) or is only reported. Default: `error`. */
  severity?: Opt<"error" | "warning">;
}
