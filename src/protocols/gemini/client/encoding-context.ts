import { BOUNDS } from "../../../lib/bounds.ts";
import { fail } from "../../../model/error.ts";
import type { ChatRequest } from "../../../model/request.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { fitName } from "../../tool-calls.ts";
import type { FullGeminiTraits } from "../dialect.ts";
import { digest } from "../constants.ts";

/** Remaining size of all expanded schemas of one request. */
export interface ExpansionBudget {
  remaining: number;
}

/** Context that the encoders of one request share. */
export interface GeminiEncoding {
  of: CallContext;
  traits: FullGeminiTraits;
  /** Function names by call ID. In this protocol, results refer to calls by name. */
  functionNames: ReadonlyMap<string, string>;
  expansionBudget: ExpansionBudget;
}

export function createEncoding(
  r: ChatRequest,
  of: CallContext,
  traits: FullGeminiTraits,
): GeminiEncoding {
  const called = new Map<string, string>();
  for (const { blocks } of r.turns)
    for (const block of blocks) if (block.type === "call") called.set(block.id, block.name);
  return {
    of,
    traits,
    functionNames: called,
    expansionBudget: { remaining: BOUNDS.schemaExpansion.max },
  };
}

export const failUnsupported = (what: string, param: string, code = "unsupported_content"): never =>
  fail("unsupported", `${what} cannot be sent to a Gemini model.`, { param, code });

const LEGAL = /^[a-zA-Z_][a-zA-Z0-9_.:-]*$/;

/**
 * Returns a function name that is legal in this protocol, which allows dots and colons. Other names
 * become a legal name that ends in a hash of the original, from which the original can be restored.
 */
export function toFunctionName(name: string, e: GeminiEncoding): string {
  const most = e.traits.nameLength;
  if (name.length <= most && LEGAL.test(name)) return name;
  const fitted = fitName(name, most - 1);
  if (LEGAL.test(fitted)) return fitted;
  const hash = `_${digest(name, 8)}`;
  return fitted.endsWith(hash) ? `_${fitted}` : `_${fitted.slice(0, most - 10)}${hash}`;
}
