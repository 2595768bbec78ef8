// What a JSON value is, if it is that. Upstreams and clients send anything; whoever reads them asks here.
import { createHash } from "node:crypto";
import { parseShallow } from "../../lib/json.ts";
import { memory } from "../memory.ts";
import type { Json, JsonObject, Media, Opt } from "../../plugin/index.ts";

/** This protocol, as an origin: of proofs that travel bare, of items and parts that only it understands. */
export const ORIGIN = "responses";

export const object = (v: unknown): JsonObject | undefined =>
  typeof v === "object" && v !== null && !Array.isArray(v) ? (v as JsonObject) : undefined;
export const list = (v: unknown): readonly Json[] => (Array.isArray(v) ? (v as Json[]) : []);
export const text = (v: unknown): string | undefined => (typeof v === "string" ? v : undefined);
export const number = (v: unknown): number | undefined =>
  typeof v === "number" && Number.isFinite(v) ? v : undefined;
export const flag = (v: unknown): boolean | undefined => (typeof v === "boolean" ? v : undefined);

/** The object that a text spells, if it spells one. */
export function parsed(json: string): JsonObject | undefined {
  try {
    return object(parseShallow(json));
  } catch {
    return undefined;
  }
}

/** `{a: undefined}` says nothing on a wire but is a key in memory: what is absent shall not be there. */
export function present<T extends object>(fields: T): T {
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) if (value !== undefined) kept[key] = value;
  return kept as T;
}

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?((?:;[\w-]+=[^;,]*)*);base64,/i;

/** Bytes that came as a data address stay base64; any other address stays one. */
export function mediaOf(url: string): Media {
  const head = DATA_URL.exec(url);
  if (!head) return { url };
  const base64 = url.slice(head[0].length);
  return { mime: mimeOf(head[1]), base64: /\s/.test(base64) ? base64.replace(/\s+/g, "") : base64 };
}

const mimeOf = (mime: Opt<string>): string | undefined =>
  mime?.toLowerCase() === "image/jpg" ? "image/jpeg" : mime?.toLowerCase();

/** The address that says the same bytes; undefined for what has no bytes. */
export function dataUrl(media: Media, mime: string): string | undefined {
  const base64 = base64Of(media);
  return base64 === undefined ? undefined : `data:${media.mime ?? mime};base64,${base64}`;
}

export function base64Of(media: Media): string | undefined {
  if ("base64" in media) return media.base64;
  return "bytes" in media ? media.bytes.toString("base64") : undefined;
}

/**
 * Calls are linked by an id of at most 64 characters here. A longer one becomes its digest, on both ends of the link
 * and in every later turn, because nothing but the id itself decides.
 */
export const callId = (id: string): string => (id.length > 64 ? `call_${digest(id)}` : id);

/** 43 characters that stand for any text. */
export const digest = (of: string): string => createHash("sha256").update(of).digest("base64url");

export const { came, cameFrom: cameAs } = memory();
