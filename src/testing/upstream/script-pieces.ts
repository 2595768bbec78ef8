import { createSeededRandom } from "../random.ts";
import type { FinishReason } from "../../model/event.ts";
import type { Usage } from "../../model/usage.ts";
import type { Json } from "../../model/values.ts";

/**
 * How bytes are split. A piece is an event or a complete JSON text. `pieces`: one piece at a time.
 * `whole`: all together. `bytes`: one byte at a time. Otherwise: a number of bytes at a time, at
 * given offsets, or at random. `max` is the longest random chunk. Default: 64.
 */
export type Chunks =
  | "pieces"
  | "whole"
  | "bytes"
  | number
  | { readonly at: readonly number[] }
  | { readonly seed: number; readonly max?: number };

/** Returns the same bytes in other chunks. */
export function splitChunks(pieces: readonly Buffer[], how: Chunks): Buffer[] {
  if (how === "pieces") return pieces.filter((piece) => piece.length > 0);
  const bytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  if (bytes.length === 0) return [];
  if (how === "whole") return [bytes];
  const chunks: Buffer[] = [];
  const upTo = (end: number) => {
    chunks.push(bytes.subarray(taken, end));
    taken = end;
  };
  let taken = 0;
  if (typeof how === "object" && "at" in how) {
    for (const offset of how.at) if (offset > taken && offset < bytes.length) upTo(offset);
    upTo(bytes.length);
    return chunks;
  }
  const next = chunkSizes(how);
  while (taken < bytes.length) upTo(Math.min(bytes.length, taken + next()));
  return chunks;
}

function chunkSizes(how: "bytes" | number | { readonly seed: number; readonly max?: number }) {
  if (how === "bytes") return () => 1;
  if (typeof how === "number") return () => Math.max(1, Math.floor(how));
  const chance = createSeededRandom(how.seed);
  return () => 1 + Math.floor(chance() * (how.max ?? 64));
}

// Types of a script's content and of the options for sending it. The format writers of the fake
// upstream use only these types.

/** One output item of the model: a text, a refusal, reasoning, or a tool call. */
export type ScriptItem =
  | { readonly type: "text" | "refusal"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string; readonly proof: string | undefined }
  | {
      readonly type: "call";
      readonly id: string | undefined;
      readonly name: string;
      readonly args: string;
      readonly custom: boolean;
    };

/** Content of a script that a format writer needs. */
export interface ScriptOutput {
  readonly items: readonly ScriptItem[];
  readonly usage: Usage | undefined;
  readonly finish: FinishReason | undefined;
  readonly sequence: string | undefined;
  readonly model: string | undefined;
  /** Message of the error that ends the stream instead of a finish. */
  readonly error: string | undefined;
}

/** Options for writing a script in an API format. */
export interface FormatOptions {
  readonly stream: boolean;
  readonly model: string;
  /** Number of the response, which makes its IDs unique within one upstream. */
  readonly responseNumber: number;
  /** Body of the request that is answered. */
  readonly body: { readonly [field: string]: Json | undefined };
}

/** Splits a text as models stream it: word by word, each with the space before it. */
export const splitWords = (text: string): string[] =>
  text === "" ? [] : (text.match(/\s*\S+(?:\s+$)?|\s+/g) ?? [text]);

/**
 * Splits the arguments of a tool call into pieces of a few characters, at any position but never
 * inside a character.
 */
export function splitArguments(text: string, length = 7): string[] {
  const letters = [...text];
  const pieces: string[] = [];
  for (let i = 0; i < letters.length; i += length)
    pieces.push(letters.slice(i, i + length).join(""));
  return pieces;
}

/**
 * Creation time in Unix seconds, the same for every response, so that responses can be compared.
 */
export const CREATED = 1795000000;
