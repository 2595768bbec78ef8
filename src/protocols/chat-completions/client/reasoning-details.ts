// Collects `reasoning_details`, in which some aggregators keep the signatures of their own
// providers. The details must be returned complete and in order, so they become one proof, whose
// content the gateway does not interpret.
import type { Json, JsonObject, Proof } from "../../../plugin/index.ts";
import { textIn } from "../server/reasoning.ts";
import { asObject } from "../../json-values.ts";
import { ID } from "../constants.ts";

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
