// What a JSON value is, if it is that: clients and upstreams send anything, and whoever reads it asks here.
import { createHash } from "node:crypto";
import { parseShallow } from "../../lib/json.ts";
import { memory } from "../memory.ts";
import type { Json, JsonObject, Media, Opt, Proof } from "../../plugin/index.ts";

export const ID = "chat-completions";

export const { came, cameFrom } = memory();

export const object = (v: unknown): JsonObject | undefined =>
  typeof v === "object" && v !== null && !Array.isArray(v) ? (v as JsonObject) : undefined;
export const list = (v: unknown): readonly Json[] => (Array.isArray(v) ? (v as Json[]) : []);
export const text = (v: unknown): string | undefined => (typeof v === "string" ? v : undefined);
export const number = (v: unknown): number | undefined =>
  typeof v === "number" && Number.isFinite(v) ? v : undefined;
export const flag = (v: unknown): boolean | undefined => (typeof v === "boolean" ? v : undefined);

/** Without the members that are undefined: what is absent shall not be there. */
export function present<T extends object>(of: T): T {
  const kept: Record<string, unknown> = {};
  for (const key in of) if (of[key] !== undefined) kept[key] = of[key];
  return kept as T;
}

/** What a proof of this wire holds. It may have come in an envelope, and then a client wrote it: anything else than an object or a list is nothing. */
export function heldIn(proof: Proof): Json | undefined {
  try {
    const held = parseShallow(proof.data);
    return typeof held === "object" && held !== null ? (held as Json) : undefined;
  } catch {
    return undefined;
  }
}

/** A list of names is easier to read as a sentence. */
export const names = (...sentences: readonly string[]): ReadonlySet<string> =>
  new Set(sentences.flatMap((s) => s.split(" ")));

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w-]+=[^;,]*)*;base64,/i;

/** Bytes in an address stay base64; any other address stays one. */
export function mediaOf(url: string): Media {
  const head = DATA_URL.exec(url);
  if (!head) return { url };
  const base64 = url.slice(head[0].length);
  const mime = head[1]?.toLowerCase();
  return present({
    mime: mime === "image/jpg" ? "image/jpeg" : mime,
    base64: /\s/.test(base64) ? base64.replace(/\s+/g, "") : base64,
  });
}

export function base64Of(media: Media): string | undefined {
  if ("base64" in media) return media.base64;
  return "bytes" in media ? media.bytes.toString("base64") : undefined;
}

/** The address of the same bytes, or the address that there is; undefined for a file that only its owner can name. */
export function urlOf(media: Media, mime: string): string | undefined {
  if ("url" in media) return media.url;
  const base64 = base64Of(media);
  return base64 === undefined ? undefined : `data:${media.mime ?? mime};base64,${base64}`;
}

/** Letters and digits that stand for any text, the same ones every time. */
export function digest(of: string, length: number): string {
  const hex = createHash("sha256").update(of).digest("hex");
  return BigInt(`0x${hex}`).toString(36).padStart(49, "0").slice(-length);
}

/** A call's arguments as the string they are meant to be. */
export const argsOf = (v: Opt<Json>): string =>
  typeof v === "string" ? v : v === undefined || v === null ? "" : JSON.stringify(v);
