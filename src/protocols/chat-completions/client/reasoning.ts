// Reads reasoning from the places where providers put it: structured details, and tags in the text.
import type { Json, JsonObject, Proof } from "../../../plugin/index.ts";
import { ID } from "../constants.ts";
import { textIn } from "../server/reasoning.ts";
import { asObject } from "../../json-values.ts";

/**
 * Collects `reasoning_details`, in which some aggregators keep the signatures of their own
 * providers. The details must be returned complete and in order, so they become one proof, whose
 * content the gateway does not interpret.
 */
export interface ReasoningDetails {
  add(pieces: readonly Json[]): void;
  /** Returns the text of the pieces. */
  textOf(pieces: readonly Json[]): string;
  /** Returns everything since the last call as one proof. */
  takeProof(): Proof | undefined;
}

const keyOf = ({ index, type }: JsonObject): string => JSON.stringify([index, type]);

const APPENDED_FIELDS = ["text", "summary", "data"] as const;

export function createReasoningDetails(): ReasoningDetails {
  let entries: Record<string, Json | undefined>[] = [];
  /** Entries with an index, by index and type. */
  const numbered = new Map<string, Record<string, Json | undefined>>();
  return {
    add(pieces) {
      for (const raw of pieces) {
        const piece = asObject(raw);
        if (!piece) continue;
        const key = piece["index"] === undefined ? undefined : keyOf(piece);
        const last = key === undefined ? undefined : numbered.get(key);
        if (!last) {
          const entry = { ...piece };
          entries.push(entry);
          if (key !== undefined) numbered.set(key, entry);
          continue;
        }
        for (const key in piece) {
          const before = last[key];
          const now = piece[key];
          if (now === undefined || now === null) continue;
          const grows = (APPENDED_FIELDS as readonly string[]).includes(key);
          last[key] =
            grows && typeof before === "string" && typeof now === "string" ? before + now : now;
        }
      }
    },
    textOf: (pieces) => (pieces.length === 0 ? "" : textIn(pieces)),
    takeProof() {
      if (entries.length === 0) return undefined;
      const data = JSON.stringify(entries);
      entries = [];
      numbered.clear();
      return { origin: ID, kind: "reasoning_details", data };
    },
  };
}

// Extracts reasoning that is part of the text, between tags. It is used only for backends that are
// known to do this, and only at the start of the text. The same tags further down may be code that
// the response quotes.
const OPEN = "<think>";

const CLOSE = "</think>";

export interface ThinkTagParser {
  push(text: string): void;
  end(): void;
}

export function createThinkTagParser(
  say: (channel: "text" | "reasoning", text: string) => void,
): ThinkTagParser {
  let where: "before" | "inside" | "after" | "text" = "before";
  /** Text that may be the beginning of a tag. */
  let held = "";
  /** Whether only whitespace has arrived so far. */
  let blank = true;
  const push = (text: string): void => {
    const all = held + text;
    held = "";
    switch (where) {
      case "before": {
        // Whitespace in many pieces is collected without repeated trimming.
        if (text.trim() === "" && blank) {
          held = all;
          return;
        }
        const trimmed = all.trimStart();
        blank = trimmed === "";
        if (trimmed.startsWith(OPEN)) {
          where = "inside";
          return push(trimmed.slice(OPEN.length).replace(/^\n/, ""));
        }
        if (OPEN.startsWith(trimmed)) {
          held = all;
          return;
        }
        where = "text";
        return say("text", all);
      }
      case "inside": {
        const end = all.indexOf(CLOSE);
        if (end >= 0) {
          where = "after";
          say("reasoning", all.slice(0, end));
          return push(all.slice(end + CLOSE.length));
        }
        const keep = possibleCloseTagLength(all);
        held = all.slice(all.length - keep);
        return say("reasoning", all.slice(0, all.length - keep));
      }
      case "after": {
        const trimmed = all.trimStart();
        if (trimmed === "") return;
        where = "text";
        return say("text", trimmed);
      }
      case "text":
        return say("text", all);
    }
  };
  return {
    push,
    end() {
      if (held !== "") say(where === "inside" ? "reasoning" : "text", held);
      held = "";
    },
  };
}

/** Returns how many of the last characters could begin the closing tag. */
function possibleCloseTagLength(text: string): number {
  for (let n = Math.min(CLOSE.length - 1, text.length); n > 0; n--)
    if (CLOSE.startsWith(text.slice(-n))) return n;
  return 0;
}
