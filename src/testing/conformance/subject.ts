import { inspect } from "node:util";
import type { Work } from "../../model/work.ts";
import type { Context } from "../../plugin/context.ts";
import type { Definition } from "../../plugin/define.ts";

/** A plugin under judgement, with everything that its author gave. */
export interface Subject {
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
  readonly works: readonly Work[];
  /** Values that must never be read anywhere. */
  readonly secrets: readonly string[];
  /** Everything that was logged, thrown or emitted while other checks ran: what L7 searches. */
  readonly heard: unknown[];
}

/** A secret in a thing that people may come to read, in any of its usual clothes; undefined when there is none. */
export function leakIn(thing: unknown, secrets: readonly string[]): string | undefined {
  const text =
    typeof thing === "string"
      ? thing
      : inspect(thing, { depth: 8, maxStringLength: null, maxArrayLength: null });
  for (const secret of secrets)
    for (const clothes of [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
      Buffer.from(secret).toString("base64"),
    ])
      if (text.includes(clothes)) return text.length > 400 ? around(text, clothes) : text;
  return undefined;
}

const around = (text: string, clothes: string) => {
  const at = text.indexOf(clothes);
  return `…${text.slice(Math.max(0, at - 150), at + clothes.length + 50)}…`;
};

/** For an author who gives nothing to judge a decoder by. */
export const notChecked = (what: string, folder: string): string =>
  `${what} is not checked: record what its upstream says (${folder}/<name>/request.json and upstream.http) and give the ` +
  "folder as `recordings`, or say `recordings: false` where there is none to be had.";
