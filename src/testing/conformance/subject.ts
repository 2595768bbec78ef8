import { inspect } from "node:util";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import type { Context } from "../../plugin/context.ts";
import type { Definition } from "../../plugin/define.ts";
import type { BatchFormat } from "../batches/batch-format.ts";
import type { BackgroundFormat } from "../background/background-format.ts";
import type { VideoFormat } from "../videos/video-format.ts";

/** A plugin under test, with everything that its author provided. */
export interface ConformanceSubject {
  readonly definition: Definition;
  /** Plugin options, with defaults filled in. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly credential: Readonly<Record<string, unknown>>;
  /** Folder of recordings. `false` if the author declared that there are no recordings. */
  readonly recordings: string | false | undefined;
  readonly module: string | undefined;
  /** Answers `ctx.fetch`. */
  readonly fetch: Context["fetch"] | undefined;
  /** Batch API of the provider. Default: OpenAI's. */
  readonly batches: BatchFormat | undefined;
  readonly videos: VideoFormat | undefined;
  readonly background: BackgroundFormat | undefined;
  /** Operations that a package adds. */
  readonly operations: readonly OperationSpec[];
  /** Values that must not appear in any output. */
  readonly secrets: readonly string[];
  /**
   * All output of other checks that was logged, thrown, or emitted. The check for secrets searches
   * it.
   */
  readonly observed: unknown[];
}

/** Minimum length of a part of a secret that counts as a leak. */
const LEAK_LENGTH = 8;

/**
 * Yields a secret, and parts of it if it is a key. A document such as a service account's key file
 * also contains words that are not secret.
 */
function* secretParts(secret: string): Generator<string> {
  yield secret;
  if (secret.length > 256 || /[\s{}]/.test(secret)) return;
  for (let at = 0; at + LEAK_LENGTH <= secret.length; at++)
    yield secret.slice(at, at + LEAK_LENGTH);
}

/**
 * Returns a secret, or a part of one, that a value contains in any encoding. Undefined if the value
 * contains none.
 */
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

/** Returns the message for an author who provides no recordings for a decoder. */
export const notCheckedMessage = (what: string, folder: string): string =>
  `${what} is not checked: record responses of its upstream (${folder}/<name>/request.json and upstream.http) and pass the ` +
  "folder as `recordings`, or set `recordings: false` if recordings are not available.";
