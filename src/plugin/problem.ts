import type { Opt } from "../model/values.ts";

/** `path` is a JSON pointer into the options. */
export interface Problem {
  path: string;
  message: string;
  hint?: Opt<string>;
  severity?: Opt<"error" | "warning">;
}
