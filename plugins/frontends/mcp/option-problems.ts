// Problems of the options that their schema cannot express.
import type { Opt, Problem } from "tollgate/plugin";
import { CallConditions, type ConditionOptions } from "./conditions/call-conditions.ts";

interface CheckedOptions {
  readonly servers: Readonly<
    Record<
      string,
      {
        readonly auth?: Opt<{ readonly type: string; readonly token?: Opt<string> }>;
        readonly conditions?: Opt<readonly ConditionOptions[]>;
      }
    >
  >;
  readonly sets?: Opt<Readonly<Record<string, readonly string[]>>>;
}

export function* findProblems({ servers, sets }: CheckedOptions): Iterable<Problem> {
  for (const name of Object.keys(sets ?? {}))
    if (Object.hasOwn(servers, name))
      yield { path: `/sets/${name}`, message: `"${name}" is already the name of a server` };
  for (const [name, { auth, conditions = [] }] of Object.entries(servers)) {
    if (auth?.type === "token" && auth.token === undefined)
      yield { path: `/servers/${name}/auth`, message: "token is required for the type token" };
    for (const [at, condition] of (conditions ?? []).entries()) {
      try {
        void new CallConditions([condition]);
      } catch (error) {
        const message = `not a valid JSON Schema: ${(error as Error).message}`;
        yield { path: `/servers/${name}/conditions/${at}/arguments`, message };
      }
    }
  }
}
