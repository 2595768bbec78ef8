// Problems of the options that their schema cannot express.
import type { Opt, Problem } from "tollgate/plugin";
import { checkServerAuth, type ServerAuthOptions } from "../auth/server-auth.ts";
import { CallConditions, type ConditionOptions } from "../conditions/call-conditions.ts";

/** Minimum length of a secret that encrypts credentials, in characters. */
const MIN_KEY_LENGTH = 32;

interface CheckedOptions {
  readonly servers: Readonly<
    Record<
      string,
      {
        readonly auth?: Opt<object>;
        readonly openapi?: Opt<{ readonly document?: string; readonly document_url?: string }>;
        readonly conditions?: Opt<readonly ConditionOptions[]>;
      }
    >
  >;
  readonly sets?: Opt<Readonly<Record<string, readonly string[]>>>;
  readonly connections?: Opt<{ readonly encryption_keys?: Opt<readonly string[]> }>;
}

export function* findProblems({ servers, sets, connections }: CheckedOptions): Iterable<Problem> {
  for (const name of Object.keys(sets ?? {}))
    if (Object.hasOwn(servers, name))
      yield { path: `/sets/${name}`, message: `"${name}" is already the name of a server` };
  const hasConnections = connections != null;
  for (const [at, key] of (connections?.encryption_keys ?? []).entries())
    if (key.length < MIN_KEY_LENGTH)
      yield {
        path: `/connections/encryption_keys/${at}`,
        message: `expected at least ${MIN_KEY_LENGTH} characters`,
      };
  for (const [name, { auth, openapi, conditions = [] }] of Object.entries(servers)) {
    if (auth)
      yield* checkServerAuth(auth as ServerAuthOptions, `/servers/${name}/auth`, hasConnections);
    if (openapi && (openapi.document === undefined) === (openapi.document_url === undefined))
      yield {
        path: `/servers/${name}/openapi`,
        message: "requires document or document_url, but not both",
      };
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
