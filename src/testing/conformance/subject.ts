import { inspect } from "node:util";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import type { Context } from "../../plugin/context.ts";
import type { Definition } from "../../plugin/define.ts";

/** A plugin under judgement, with everything that its author gave. */
export interface ConformanceSubject {
  readonly definition: Definition;
  /** Defaults filled in. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly credential: Readonly<Record<string, unknown>>;
  /** False: its author says that there are none. */
  readonly recordings: string | false | undefined;
  readonly module: string | undefined;
  /** What answers `ctx.fetch`. */
  readonly fetch: Context["fetch"] | undefined;
  /** Of kinds that a package adds. */
  readonly operations: readonly OperationSpec[];
  /** Values that must never be read anywhere. */
  readonly secrets: readonly string[];
  /** Everything that was logged, thrown or emitted while other checks ran: what L7 searches. */
  readonly observed: unknown[];
}

/** A part of a secret this long is a leak, too. */
const LEAK_LENGTH = 8;

/** A secret, and each part of it where it is a key: a document such as a service account's has words that are no secret. */
function* secretParts(secret: string): Generator<string> {
  yield secret;
  if (secret.length > 256 || /[\s{}]/.test(secret)) return;
  for (let at = 0; at + LEAK_LENGTH <= secret.length; at++)
    yield secret.slice(at, at + LEAK_LENGTH);
}

/** A secret or a part of one in a thing that people may come to read, in any encoding; undefined when there is none. */
export function findLeak(thing: unknown, secrets: readonly string[]): string | undefined {
  const text =
    typeof thing === "string"
      ? thing
      : inspect(thing, { depth: 8, maxStringLength: null, maxArrayLength: null });
  for (const secret of secrets)
    for (const piece of secretParts(secret))
      for (const clothes of [
        piece,
        JSON.stringify(piece).slice(1, -1),
        encodeURIComponent(piece),
        Buffer.from(piece).toString("base64"),
      ])
        if (text.includes(clothes)) return text.length > 400 ? leakContext(text, clothes) : text;
  return undefined;
}

const leakContext = (text: string, clothes: string) => {
  const at = text.indexOf(clothes);
  return `…${text.slice(Math.max(0, at - 150), at + clothes.length + 50)}…`;
};

/** For an author who gives nothing to judge a decoder by. */
export const notCheckedMessage = (what: string, folder: string): string =>
  `${what} is not checked: record what its upstream says (${folder}/<name>/request.json and upstream.http) and give the ` +
  "folder as `recordings`, or say `recordings: false` where there is none to be had.";
